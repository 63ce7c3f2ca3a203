"""What the workers of one shape found, in one place: medians, spreads, the winner, the gain, and what went wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from tensorplay.cli.bench_process import BenchMode
from tensorplay.cli.bench_shape import BenchShape
from tensorplay.measure.statistics import median, quartiles

__all__ = ["MOST_SPREAD", "Outcome", "ShapeSummary", "Spread"]

MOST_SPREAD = 0.1
"""How far a gain may vary to either side before it is called restless: what tuning gains is often less."""

Reply = Mapping[str, Any]  # JSON: what `tensorplay.cli.bench_worker` says it is


class Outcome(StrEnum):
    """What became of a shape."""

    REPLAYED = "replayed"
    NOT_TUNED = "not tuned"
    SKIPPED = "skipped"
    FAILED = "failed"


class Spread(NamedTuple):
    """A median, and the bounds between which most observations lie."""

    median: float
    low: float
    high: float

    @property
    def ordered(self) -> tuple[float, float, float]:
        """Return low, median and high."""
        return self.low, self.median, self.high


@dataclass(slots=True)
class ShapeSummary:
    """One shape, filled by the replies of its workers as they come in.

    Attributes
    ----------
    problems : list of str
        What went wrong, in words; any makes the shape a failure.
    skipped : str
        Why the shape cannot run here; empty when it can.
    """

    shape: BenchShape
    replies: dict[BenchMode, list[Reply]] = field(default_factory=lambda: {mode: [] for mode in BenchMode})
    problems: list[str] = field(default_factory=list)
    skipped: str = ""

    def add(self, mode: BenchMode, reply: Reply) -> None:
        """Take the reply of one worker."""
        if "skipped" in reply:
            self.skipped = reply["skipped"]
            return
        self.replies[mode].append(reply)
        if reply["fault"]:
            self.problems.append(f"wrong values in the {mode} process: {reply['fault']}")
        stats = reply["stats"]
        if mode is BenchMode.DEFAULT or not self.is_tuned:
            return
        if mode is BenchMode.REPLAY and stats["measured"]:
            self.problems.append("the replay process measured, and must not")
        if mode is BenchMode.REPLAY and not stats["replayed"]:
            self.problems.append("there is a winner, and the replay process did not replay it")

    @property
    def is_tuned(self) -> bool:
        """Return whether the tuning process had a winner at its end."""
        return any(reply["kernel"] is not None for reply in self.replies[BenchMode.TUNE])

    @property
    def outcome(self) -> Outcome:
        """Return what became of the shape."""
        if self.problems:
            return Outcome.FAILED
        if self.skipped:
            return Outcome.SKIPPED
        return Outcome.REPLAYED if self.is_tuned else Outcome.NOT_TUNED

    @property
    def is_complete(self) -> bool:
        """Return whether every mode has answered, so that there is something to compare."""
        return all(self.replies.values())

    @property
    def not_measured(self) -> str:
        """Return why the tuning process could not measure; empty when it did not try."""
        return next((reply["not_measured"] for reply in self.replies[BenchMode.TUNE] if reply["not_measured"]), "")

    @property
    def winner(self) -> Reply | None:
        """Return the reply that names the winner which was replayed; None without one."""
        first = self.replies[BenchMode.TUNE][:1]
        return first[0] if first and first[0]["kernel"] is not None else None

    @property
    def tuning_ms(self) -> Spread | None:
        """Return the time of the call that measured; None when none did, since the file held the winner."""
        measured = [reply for reply in self.replies[BenchMode.TUNE] if reply["stats"]["measured"]]
        return _spread([[reply["first_call_ms"]] for reply in measured])

    @property
    def gain_paired(self) -> Spread | None:
        """Return how many times longer NumPy takes than a replay, timed alternately in one process."""
        return _spread([reply["paired"] for reply in self.replies[BenchMode.REPLAY]])

    @property
    def is_restless(self) -> bool:
        """Return whether the gain varies so much that it says little."""
        gain = self.gain_paired
        return gain is not None and gain.high - gain.low > 2 * MOST_SPREAD * gain.median

    @property
    def gain_between_processes(self) -> float | None:
        """Return the steady time of default dispatch over that of replay, which ran in another process."""
        default, replay = self.steady_ms(BenchMode.DEFAULT), self.steady_ms(BenchMode.REPLAY)
        return None if default is None or replay is None else default.median / replay.median

    def first_call_ms(self, mode: BenchMode) -> Spread | None:
        """Return the time of the first call of a process."""
        return _spread([[reply["first_call_ms"]] for reply in self.replies[mode]])

    def steady_ms(self, mode: BenchMode) -> Spread | None:
        """Return the time of one call once everything is warm."""
        return _spread([reply["steady_ms"] for reply in self.replies[mode]])

    @property
    def replayed(self) -> int:
        """Return how many calls were replayed, in all replay processes together."""
        return sum(reply["stats"]["replayed"] for reply in self.replies[BenchMode.REPLAY])

    @property
    def measured_in_replay(self) -> int:
        """Return how many signatures the replay processes measured; it has to be none."""
        return sum(reply["stats"]["measured"] for reply in self.replies[BenchMode.REPLAY])


def _spread(processes: Sequence[Sequence[float]]) -> Spread | None:
    """Return the median over processes of each one's median, and the lowest and highest; of one, its quartiles."""
    observed = [values for values in processes if values]
    if not observed:
        return None
    if len(observed) == 1:
        return Spread(median(observed[0]), *quartiles(observed[0]))
    medians = [median(values) for values in observed]
    return Spread(median(medians), min(medians), max(medians))
