"""All ranks of a job on this host as one of them sees them: who answers, how each stands, and where they differ."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from prometheus_client.core import Metric
from pydantic import ValidationError
from starlette.types import ASGIApp

from tensorplay.runtime.resolution import Reason
from tensorplay.service.disagreement import Disagreements, Winner, winner_of
from tensorplay.service.problems import Problem
from tensorplay.service.rank_line import Answer, RankLine
from tensorplay.service.rank_metrics import metrics_of
from tensorplay.service.rank_schemas import Disagreement, RankModel, RankSummary
from tensorplay.service.worker import Worker

__all__ = ["Ranks"]

_API = "/api/v1"
_SLICE = 500
_WINNERS_S = 5.0
# What is a rank's own by its nature: it differs, and nothing is wrong.
_OWN_SETTINGS = frozenset({"filename", "untuned_filename", "verbose_filename", "dashboard"})


class Ranks:
    """The ranks; every question is put to all of them at the same time, and none waits for one that hangs.

    Parameters
    ----------
    line : RankLine
        The way to each.
    worker : Worker
        Whose threads wait and compute: those of the loop itself would hold up, or break, the end of the program.
    """

    def __init__(self, line: RankLine, worker: Worker) -> None:
        self.line = line
        self._worker = worker
        self._listed: tuple[object, int] = (None, 0)
        self._compared: tuple[object, Sequence[Disagreement]] = (None, ())

    @property
    def is_first(self) -> bool:
        """Return whether this process answers for the others."""
        return self.line.placement is not None and self.line.placement.is_first

    def numbers(self, who: str) -> list[int]:
        """Return the ranks that `all` or a number means; a 404 `Problem` for one that is not of this job."""
        if who == "all" and (found := self.line.numbers()):
            return found
        if who == "all":
            raise Problem(404, "not-found", "this process was not started with others: there are no ranks")
        self.line.check(int(who))
        return [int(who)]

    async def listed(self, own: ASGIApp) -> list[RankModel]:
        """Return every rank, by its number on this host."""
        numbers = self.line.numbers()
        told = await asyncio.gather(*(self._told(own, number) for number in numbers))
        values = _different([each for each in told if isinstance(each, RankSummary)])
        own_rank = self.line.placement.local_rank if self.line.placement else None
        return [
            RankModel(
                local_rank=number,
                state="reachable" if isinstance(each, RankSummary) else "unreachable",
                reason=each if isinstance(each, str) else None,
                is_own=number == own_rank,
                differs={name: each.settings[name] for name in values} if isinstance(each, RankSummary) else {},
                summary=each if isinstance(each, RankSummary) else None,
            )
            for number, each in zip(numbers, told, strict=True)
        ]

    def revision(self, ranks: Sequence[RankModel]) -> int:
        """Return a number that grows whenever the list is another than the last time."""
        before, number = self._listed
        if before != ranks:
            self._listed = (list(ranks), number + 1)
        return self._listed[1]

    async def disagreements(self, own: ASGIApp, ranks: Sequence[RankModel]) -> Sequence[Disagreement]:
        """Return the shapes for which ranks recorded different kernels, the greatest difference in time first."""
        state = [(each.local_rank, each.summary.id, each.summary.results_revision) for each in ranks if each.summary]
        if self._compared[0] != state:
            found = Disagreements()
            are_told = await asyncio.gather(*(self._compare(own, number, found) for number, _, _ in state))
            # What a rank could not tell in time, it is asked for the next time.
            listed = await self._worker.compute(found.taken)
            self._compared = (state if all(are_told) else None, listed)
            return listed
        return self._compared[1]

    async def everyone(self, own: ASGIApp, numbers: Sequence[int], path: str, **options: Any) -> list[Answer | Problem]:
        """Return what each of some ranks answers, or why it does not."""
        return await asyncio.gather(*(self._asked(own, number, path, options) for number in numbers))

    async def metrics(self, own: ASGIApp) -> dict[int, list[Metric] | None]:
        """Return the metrics of each rank; None of one that does not answer."""
        numbers = self.line.numbers()
        answers = await self.everyone(own, numbers, "/metrics")
        return {number: _metrics(answer) for number, answer in zip(numbers, answers, strict=True)}

    async def _asked(self, own: ASGIApp, number: int, path: str, options: dict[str, Any]) -> Answer | Problem:
        try:
            return await self.line.ask(own, number, path, **options)
        except Problem as problem:
            if problem.code == "rank-unreachable":
                await self._worker.tidy(partial(self.line.remove_dead, number))
            return problem

    async def _told(self, own: ASGIApp, number: int) -> RankSummary | str:
        """Return what a rank tells of itself, or why it does not."""
        answer = await self._asked(own, number, f"{_API}/ranks/own", {})
        if isinstance(answer, Problem):
            return answer.detail
        if answer.status != 200:
            return f"it answers {answer.status}: the log of its process, or a version that differs, says why"
        try:
            return _summary(answer.content)
        except (ValidationError, ValueError):
            return "what it tells is not understood here: it may run another version of TensorPlay"

    async def _compare(self, own: ASGIApp, number: int, found: Disagreements) -> bool:
        """Add the winners of a rank; return whether it told them."""
        answer = await self._asked(own, number, f"{_API}/results.jsonl", {"limit": _WINNERS_S})
        if isinstance(answer, Problem) or answer.status != 200:
            return False
        async for winner in _winners(answer.content):
            found.add(number, winner)
        return True


def _summary(content: bytes) -> RankSummary:
    """Return what a rank tells; `ValueError` when it lacks what is shown of every rank."""
    summary = RankSummary.model_validate_json(content)
    if missing := [reason.value for reason in Reason if reason.value not in summary.stats]:
        raise ValueError(f"no {missing[0]} is counted")
    return summary


async def _winners(content: bytes) -> AsyncIterator[Winner]:
    # In slices: the thread that multiplies waits for none of them.
    for number, line in enumerate(content.splitlines()):
        if number % _SLICE == 0:
            await asyncio.sleep(0)
        try:
            told = json.loads(line)
            yield winner_of(told["op"], told["params"], told["kernel"], told["time_ms"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue


def _metrics(answer: Answer | Problem) -> list[Metric] | None:
    if isinstance(answer, Problem) or answer.status != 200:
        return None
    try:
        return metrics_of(answer.content)
    except ValueError:
        return None


def _different(ranks: Sequence[RankSummary]) -> list[str]:
    """Return the settings that have not the same value on all ranks which have them."""
    counted = Counter(name for each in ranks for name in each.settings)
    return sorted(
        name
        for name, count in counted.items()
        if count == len(ranks)
        and name not in _OWN_SETTINGS
        and any(each.settings[name] != ranks[0].settings[name] for each in ranks)
    )
