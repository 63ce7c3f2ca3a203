"""A space of kernels by their settings: what a search walks through, without a device."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import Script, ScriptedTimer, steady

__all__ = ["ScriptedSpace"]

TimeOf = Callable[[Mapping[str, int]], float | None]
"""Milliseconds of a kernel by its settings, None for one that the library refuses."""


class ScriptedSpace:
    """Kernels called `name_a1_b2`, one for each choice of settings that runs.

    Parameters
    ----------
    name : str
        Of the family: lower-case letters.
    settings : mapping of str to sequence of int
        Each setting, lower-case letters, and its values.
    time_ms : callable
        What a kernel takes, None for one that does not run.
    noise : float
        Standard deviation of a time over its mean.
    clock : ManualClock, optional
        Is advanced by everything that takes time.
    build_ms, check_ms, overhead_ms : float
        What building a neighbour takes, comparing its result besides running it, and a call of the timer.
    seed : int
        Of the noise.

    Attributes
    ----------
    times : dict
        Milliseconds of each kernel that runs.
    timer : ScriptedTimer
        Runs them.
    wrong : set of str
        Kernels whose results are wrong.
    checked : list of str
        Kernels whose results were compared, in order.
    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Sequence[int]],
        time_ms: TimeOf,
        *,
        noise: float = 0.0,
        clock: ManualClock | None = None,
        build_ms: float = 0.05,
        check_ms: float = 0.1,
        overhead_ms: float = 0.15,
        seed: int = 0,
    ) -> None:
        self._name = name
        self._settings = {setting: tuple(values) for setting, values in settings.items()}
        self._clock = clock or ManualClock()
        self._build_ms = build_ms
        self._check_ms = check_ms
        self._values: dict[str, dict[str, int]] = {}
        self.times: dict[str, float] = {}
        self._fill(time_ms, {})
        scripts: dict[str, Script] = {kernel: steady(time, noise) for kernel, time in self.times.items()}
        self.timer = ScriptedTimer(scripts, clock=self._clock, overhead_ms=overhead_ms, seed=seed)
        self.wrong: set[str] = set()
        self.checked: list[str] = []

    @property
    def best(self) -> str:
        """Return the fastest kernel."""
        return min(self.times, key=lambda kernel: self.times[kernel])

    def kernel(self, **values: int) -> str:
        """Return the kernel of these settings."""
        return self._name + "".join(f"_{setting}{values[setting]}" for setting in self._settings)

    def neighbours(self, kernel: str) -> Iterator[str]:
        """Yield the kernels that differ in one setting and run, settings by turns and near values first."""
        at = self._values[kernel]
        near = {setting: _nearest(values, at[setting]) for setting, values in self._settings.items()}
        for turn in range(max(map(len, near.values()))):
            for setting, values in near.items():
                if turn < len(values):
                    self._clock.advance(self._build_ms / 1000.0)
                    step = self.kernel(**{**at, setting: values[turn]})
                    if step in self.times:
                        yield step

    def is_right(self, kernel: str) -> bool:
        """Run the kernel once and return whether its result is right."""
        self.checked.append(kernel)
        self._clock.advance(self._check_ms / 1000.0)
        self.timer.warm_up(kernel)
        return kernel not in self.wrong

    def recall(self, kernel: str) -> str | None:
        """Return the kernel where it runs."""
        return kernel if kernel in self.times else None

    def _fill(self, time_ms: TimeOf, chosen: dict[str, int]) -> None:
        if len(chosen) < len(self._settings):
            setting = list(self._settings)[len(chosen)]
            for value in self._settings[setting]:
                self._fill(time_ms, {**chosen, setting: value})
        elif (time := time_ms(chosen)) is not None:
            self.times[self.kernel(**chosen)] = time
            self._values[self.kernel(**chosen)] = chosen


def _nearest(values: Sequence[int], value: int) -> list[int]:
    return sorted((each for each in values if each != value), key=lambda each: abs(each - value))
