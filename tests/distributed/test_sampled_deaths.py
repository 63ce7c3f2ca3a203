"""Deaths while several near ties are sampled in one call: the killer is found, and nobody else is blamed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.csv_text import parse_results
from tensorplay.database.killers import Death, KillerLog
from tensorplay.distributed.offline import OfflineTuner, TuneOutcome
from tensorplay.gemm import Signature
from tensorplay.testing import scripted_kernel

WORKER = """
import os, signal, sys, time
from contextlib import contextmanager
from tensorplay.distributed.worker import main
from tensorplay.errors import LaunchError
from tensorplay.testing import ScriptedBackend, scripted_kernel

KERNELS = [scripted_kernel(number) for number in range(1, 8)]
FIRST, BAD = KERNELS[0], KERNELS[3]
HOW = sys.argv.pop(1)


class Deadly(ScriptedBackend):
    is_poisoned = False

    def look(self):
        if self.is_poisoned:
            raise LaunchError("an illegal memory access was encountered")

    def die(self):
        if HOW in {"killed", "killed together", "first choice killed"}:
            os.kill(os.getpid(), signal.SIGKILL)
        if HOW == "exits":
            os._exit(3)
        if HOW == "hung":
            time.sleep(600)
        if HOW == "first choice fails":
            raise LaunchError("not supported any more")
        self.is_poisoned = True
        self.look()

    def _plan(self, problem, kernel):
        plan = super()._plan(problem, kernel)

        def run(*operands):
            self.look()
            return plan.run(*operands)

        return type(plan)(problem, kernel, run)

    @contextmanager
    def open_trial(self, problem, *, rotating_bytes):
        if HOW == "gone between two" and self.trials:
            os._exit(4)
        with super().open_trial(problem, rotating_bytes=rotating_bytes) as trial:
            trial.timer = Timer(self, trial.timer, is_deadly=problem.m == 4)
            yield trial
            self.is_poisoned |= HOW == "poisoned at the end" and problem.m == 4
            self.look()


class Timer:
    def __init__(self, backend, timer, is_deadly):
        self.backend, self.timer, self.is_deadly, self.count = backend, timer, is_deadly, 0

    def warm_up(self, plan):
        self.backend.look()
        self.timer.warm_up(plan)

    def screen(self, plan, launches):
        self.backend.look()
        return self.timer.screen(plan, launches)

    def sample(self, order):
        self.backend.look()
        kernels = [plan.kernel for plan in order]
        deadly = FIRST if HOW.startswith("first choice") else BAD
        if self.is_deadly and deadly in kernels and (HOW != "killed together" or len(order) > 1):
            self.count += 1
            if self.count >= 3 and HOW not in {"fine", "gone between two", "poisoned at the end"}:
                self.backend.die()
        return self.timer.sample(order)

    def sample_launches(self, plan):
        return self.timer.sample_launches(plan)


times = [1.0, 0.5, 0.505, 0.4, 0.41, 0.402, 0.403]
sys.exit(main(find=lambda device: Deadly(dict(zip(KERNELS, times)), device=device)))
"""

KERNELS = [scripted_kernel(number) for number in range(1, 8)]
FIRST, BAD, NEXT_BEST = KERNELS[0], KERNELS[3], KERNELS[5]
DEADLY, HARMLESS = (Signature("GemmTunableOp_Float32", f"taN_m{m}_n3_k5_bias0_dev0") for m in (4, 8))


class Tuning:
    """An offline tuner of a worker that behaves as named, and how many workers it started."""

    def __init__(self, folder: Path, how: str, **options: Any) -> None:
        script = folder / "worker.py"
        script.write_text(WORKER, encoding="utf-8")
        self.starts = 0
        self._folder = folder

        def command(device: str, results: str) -> Sequence[str]:
            self.starts += 1
            return [sys.executable, str(script), how, device, results]

        environ = dict(os.environ) | {"TP_TUNABLEOP_FILENAME": str(folder / "winners.csv")}
        self._tuner = OfflineTuner(environ=environ, command=command, **options)

    def outcomes(self, *signatures: Signature) -> list[TuneOutcome]:
        return self._tuner.tune(signatures)

    @property
    def winners(self) -> dict[str, str]:
        path = self._folder / "winners0.csv"
        return (
            {entry.params: entry.kernel for entry in parse_results(path.read_bytes()).entries} if path.exists() else {}
        )

    @property
    def killers(self) -> list[tuple[Signature, str, Death]]:
        log = KillerLog(str(self._folder / "winners0.killers.csv"))
        return [(killer.signature, killer.kernel, killer.death) for killer in log.read()]


@pytest.mark.parametrize(
    ("how", "death"),
    [
        ("killed", Death.DIED),
        ("exits", Death.DIED),
        # Twice the time in which nothing is heard of a worker; `test_offline` has a worker that hangs in the suite.
        pytest.param("hung", Death.HUNG, marks=pytest.mark.nightly),
        ("poisoned", Death.POISONED),
    ],
)
def test_who_kills_among_near_ties_is_found_alone_and_the_next_best_wins(
    tmp_path: Path, how: str, death: Death
) -> None:
    tuning = Tuning(tmp_path, how, stall_s=6.0 if how == "hung" else 60.0)
    outcome, other = tuning.outcomes(DEADLY, HARMLESS)
    assert (outcome.problem, outcome.kernel) == (None, NEXT_BEST)
    assert [(killer.kernel, killer.death) for killer in outcome.killers] == [(BAD, death)]
    assert (other.problem, other.kernel, other.killers) == (None, BAD, ())
    assert tuning.killers == [(DEADLY, BAD, death)]
    assert tuning.winners == {DEADLY.params: NEXT_BEST, HARMLESS.params: BAD}
    assert tuning.starts == 3, "one dies of the group, one of the killer alone, and one goes on"


def test_where_only_company_kills_nobody_is_blamed_and_it_is_measured_all_the_same(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path, "killed together")
    (outcome,) = tuning.outcomes(DEADLY)
    assert (outcome.problem, outcome.kernel, outcome.killers) == (None, BAD, ())
    assert tuning.killers == []
    assert tuning.starts == 2


@pytest.mark.parametrize("how", ["first choice killed", "first choice poisoned", "first choice fails"])
def test_a_first_choice_that_takes_workers_down_is_a_problem_and_no_killer(tmp_path: Path, how: str) -> None:
    tuning = Tuning(tmp_path, how)
    outcome, other = tuning.outcomes(DEADLY, HARMLESS)
    assert FIRST in (outcome.problem or "")
    assert (outcome.kernel, outcome.killers) == (None, ())
    assert other.kernel == BAD
    assert tuning.killers == []
    assert tuning.winners == {HARMLESS.params: BAD}, "a worker that runs nothing any more records nothing"
    assert tuning.starts == 3


def test_a_device_that_is_found_lost_when_the_trial_ends_records_nothing_and_harms_no_other(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path, "poisoned at the end")
    outcome, other = tuning.outcomes(DEADLY, HARMLESS)
    assert "illegal memory access" in (outcome.problem or "")
    assert (outcome.kernel, outcome.killers, other.kernel) == (None, (), BAD)
    assert tuning.winners == {HARMLESS.params: BAD}


def test_a_worker_that_ends_before_it_runs_anything_costs_the_next_signature_nothing(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path, "gone between two")
    assert [outcome.problem for outcome in tuning.outcomes(DEADLY, HARMLESS)] == [None, None]
    assert tuning.winners == {DEADLY.params: BAD, HARMLESS.params: BAD}
    assert tuning.starts == 2


def test_a_worker_that_never_dies_samples_its_near_ties_together(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path, "fine")
    assert [outcome.kernel for outcome in tuning.outcomes(DEADLY)] == [BAD]
    assert tuning.starts == 1
