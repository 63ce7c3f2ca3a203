"""A timer that plays scripts instead of running kernels: each run of a test sees the same times."""

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from tensorplay.errors import LaunchError
from tensorplay.testing.manual_clock import ManualClock

__all__ = [
    "Call",
    "Script",
    "ScriptedTimer",
    "drift",
    "fast_at_first",
    "heavy_tailed",
    "steady",
    "step",
    "wandering",
    "with_outliers",
]

Script = Callable[[float, int, random.Random], float]
"""Milliseconds of one launch, from the milliseconds that passed, the launch's number (0 first) and a generator."""

CandidateT = TypeVar("CandidateT", bound=Hashable)


class Call(NamedTuple, Generic[CandidateT]):
    """One call that a timer received: which method, on which candidates in order, and the time of each launch."""

    method: Literal["warm_up", "screen", "sample"]
    order: tuple[CandidateT, ...]
    times_ms: tuple[float, ...]


def steady(mean_ms: float, noise: float = 0.0) -> Script:
    """Return a script of normal noise around a mean; `noise` is the standard deviation over the mean."""

    def script(now_ms: float, launch: int, rng: random.Random) -> float:
        del now_ms, launch
        return mean_ms * max(0.01, rng.gauss(1.0, noise))

    return script


def wandering(mean_ms: float, noise: float, memory: float) -> Script:
    """Return a script whose noise wanders: each launch keeps the share `memory` of the deviation before it.

    As the times of a kernel do whose memory, clock or neighbours change slowly; samples are not independent.
    """
    deviation, fresh = 0.0, (1.0 - memory**2) ** 0.5

    def script(now_ms: float, launch: int, rng: random.Random) -> float:
        nonlocal deviation
        del now_ms
        deviation = memory * deviation + rng.gauss(0.0, fresh) if launch else rng.gauss(0.0, 1.0)
        return mean_ms * max(0.01, 1.0 + noise * deviation)

    return script


def with_outliers(script: Script, *, share: float, factor: float) -> Script:
    """Return the script with a random `share` of its launches `factor` times slower, as when interrupted."""

    def interrupted(now_ms: float, launch: int, rng: random.Random) -> float:
        slowdown = factor if rng.random() < share else 1.0
        return script(now_ms, launch, rng) * slowdown

    return interrupted


def heavy_tailed(fastest_ms: float, shape: float) -> Script:
    """Return a script of Pareto times: none below `fastest_ms`, and for a `shape` of 2 or less no finite variance."""

    def script(now_ms: float, launch: int, rng: random.Random) -> float:
        del now_ms, launch
        return fastest_ms * rng.paretovariate(shape)

    return script


def fast_at_first(script: Script, *, factor: float, launches: int = 2) -> Script:
    """Return the script with its first launches `factor` times as long, for a factor below 1.

    The default of two is the untimed one and the first timed one.
    """

    def flattered(now_ms: float, launch: int, rng: random.Random) -> float:
        return script(now_ms, launch, rng) * (factor if launch < launches else 1.0)

    return flattered


def drift(per_second: float) -> Callable[[float], float]:
    """Return an environment in which everything slows down by this share in each second."""
    return lambda now_ms: 1.0 + per_second * now_ms / 1000.0


def step(at_ms: float, factor: float) -> Callable[[float], float]:
    """Return an environment in which everything takes `factor` times as long from one moment on."""
    return lambda now_ms: factor if now_ms >= at_ms else 1.0


class ScriptedTimer(Generic[CandidateT]):
    """A `tensorplay.typing.Timer` whose times come from scripts, and which remembers every call.

    Parameters
    ----------
    scripts : mapping
        For each candidate a `Script`, a number of milliseconds that every launch takes, or a sequence of them
        whose last repeats. A script may raise `LaunchError` itself.
    environment : callable, optional
        A factor on all times, from the milliseconds that passed: what drifts or steps for everybody.
    fails_at : mapping, optional
        The launch (1 first, the untimed one) from which on a candidate raises `LaunchError`.
    clock : ManualClock, optional
        Is advanced by each launch.
    overhead_ms : float
        What each call takes besides its launches: it passes, but is not reported.
    seed : int
        Of the generator that the scripts are given.

    Attributes
    ----------
    calls : list of Call
        Those that returned, in order. Launches of a call that raised are missing here, but not in `launches`.
    launches : dict
        How often each candidate was launched, timed or not.
    now_ms : float
        Milliseconds that passed.
    """

    def __init__(
        self,
        scripts: Mapping[CandidateT, Script | float | Sequence[float]],
        *,
        environment: Callable[[float], float] | None = None,
        fails_at: Mapping[CandidateT, int] | None = None,
        clock: ManualClock | None = None,
        overhead_ms: float = 0.0,
        sample_launches: int = 1,
        seed: int = 0,
    ) -> None:
        self._scripts = dict(scripts)
        self._sample_launches = sample_launches
        self._environment = environment
        self._fails_at = dict(fails_at or {})
        self._clock = clock
        self._overhead_ms = overhead_ms
        self._rng = random.Random(seed)  # noqa: S311 - repeatable noise, not a secret
        self.calls: list[Call[CandidateT]] = []
        self.launches: dict[CandidateT, int] = dict.fromkeys(self._scripts, 0)
        self.now_ms = 0.0

    def warm_up(self, candidate: CandidateT) -> None:
        """Launch once, untimed."""
        self._run("warm_up", (candidate,))

    def screen(self, candidate: CandidateT, launches: int) -> float:
        """Return the mean of `launches` launches."""
        times = self._run("screen", (candidate,) * launches)
        return sum(times) / len(times)

    def sample(self, order: Sequence[CandidateT]) -> Sequence[float]:
        """Return the mean of `sample_launches` launches for each place of `order`."""
        times = self._run("sample", tuple(each for each in order for _ in range(self._sample_launches)))
        starts = range(0, len(times), self._sample_launches)
        return tuple(sum(times[start : start + self._sample_launches]) / self._sample_launches for start in starts)

    def sample_launches(self, candidate: CandidateT) -> int:
        """Return the same number for all."""
        del candidate
        return self._sample_launches

    def samples_of(self, candidate: CandidateT) -> int:
        """Return how many timed launches of the candidate were reported."""
        return len(self._timed(candidate))

    def spent_ms_of(self, candidate: CandidateT) -> float:
        """Return what the timed launches of the candidate took in all."""
        return sum(self._timed(candidate))

    def _timed(self, candidate: CandidateT) -> list[float]:
        timed = (call for call in self.calls if call.method != "warm_up")
        return [ms for call in timed for who, ms in zip(call.order, call.times_ms, strict=True) if who == candidate]

    def _run(self, method: Literal["warm_up", "screen", "sample"], order: tuple[CandidateT, ...]) -> tuple[float, ...]:
        self._pass(self._overhead_ms)
        times = tuple(map(self._launch, order))
        self.calls.append(Call(method, order, times))
        return times

    def _launch(self, candidate: CandidateT) -> float:
        number = self.launches[candidate]
        self.launches[candidate] += 1
        fails_at = self._fails_at.get(candidate)
        if fails_at is not None and number + 1 >= fails_at:
            raise LaunchError(f"launch {number + 1} of {candidate} fails by script")
        script = self._scripts[candidate]
        if isinstance(script, int | float):
            time_ms = float(script)
        elif isinstance(script, Sequence):
            time_ms = script[min(number, len(script) - 1)]
        else:
            time_ms = script(self.now_ms, number, self._rng)
        if self._environment is not None:
            time_ms *= self._environment(self.now_ms)
        self._pass(time_ms)
        return time_ms

    def _pass(self, milliseconds: float) -> None:
        self.now_ms += milliseconds
        if self._clock is not None:
            self._clock.advance(milliseconds / 1000.0)
