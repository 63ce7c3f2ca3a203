"""A backend that plays scripts: what the runtime does with capture, stale kernels and failures, without a device."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tensorplay.backends.base import Backend, CandidateQuery, Plan, Trial
from tensorplay.database.record import Validator
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem
from tensorplay.testing.scripted_timer import Script, ScriptedTimer

__all__ = ["ScriptedBackend", "scripted_kernel"]


def scripted_kernel(number: int) -> str:
    """Return a well-formed kernel id of a device's library, one for each number."""
    return f"lt_id{number}_tile1_stages1_splitk1_red0_swizzle0_custom0_inner0_cluster0"


class ScriptedBackend(Backend):
    """Multiplies with NumPy under the names of scripted kernels, and takes the scripted time for it.

    Parameters
    ----------
    scripts : mapping of str to milliseconds or Script
        The time of each kernel id; the first is the first choice, and all others are candidates.
    library : int
        How many of them the library offers to in-process selection.
    device : str
        The one device.
    version : str
        A validator of the build, so that a test can be another build.
    neighbours : mapping of str to sequence of str
        The kernels that are one step away from each. Whoever is reached so is no candidate.

    Attributes
    ----------
    is_capture_live : bool
        What `is_capturing` answers. Opening a trial while it is True fails the test.
    unavailable : dict of str to str
        Kernels that do not rebuild, with the reason.
    broken : set of str
        Kernels that build, but raise `LaunchError` when they run.
    wrong : set of str
        Kernels that compute something else.
    unordered : set of str
        Kernels that are not deterministic.
    runs : list of str
        The kernel of each run outside a trial.
    trials : list of GemmProblem
        The problem of each trial that was opened.
    """

    name = "scripted"
    sources: ClassVar[tuple[str, ...]] = ("scripted",)
    captures = True

    def __init__(
        self,
        scripts: Mapping[str, Script | float],
        *,
        library: int = 1,
        device: str = "0",
        version: str = "1",
        neighbours: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._scripts = dict(scripts)
        self._neighbours = dict(neighbours or {})
        self._library = library
        self._device = device
        self._version = version
        self.is_capture_live = False
        self.trial_error: Exception | None = None
        self.unavailable: dict[str, str] = {}
        self.broken: set[str] = set()
        self.wrong: set[str] = set()
        self.unordered: set[str] = set()
        self.runs: list[str] = []
        self.trials: list[GemmProblem] = []

    def current_device(self) -> str:
        """Return the one device."""
        return self._device

    def validators(self, device: str) -> tuple[Validator, ...]:
        """Return the device and the version."""
        return (Validator("SCRIPTED_DEVICE", f"device, number {device}"), Validator("SCRIPTED_VERSION", self._version))

    def is_tunable(self, problem: GemmProblem, families: str) -> bool:
        """Return whether the problem is a single product, or all families are wanted."""
        return problem.batch == 1 or families == "all"

    def first_choice(self, problem: GemmProblem) -> Plan:
        """Return the first kernel's plan."""
        return self._plan(problem, next(iter(self._scripts)))

    def library_choices(self, problem: GemmProblem) -> Sequence[Plan]:
        """Return the plans of the library's own kernels."""
        return [self._plan(problem, kernel) for kernel in list(self._scripts)[: self._library]]

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterable[Plan]:
        """Yield every available kernel but the first, and but the neighbours of others."""
        reached = {kernel for kernels in self._neighbours.values() for kernel in kernels}
        return self._plans(problem, query, [kernel for kernel in list(self._scripts)[1:] if kernel not in reached])

    def neighbours(self, problem: GemmProblem, plan: Plan, query: CandidateQuery) -> Iterable[Plan]:
        """Yield the available kernels that are one step away from the plan's."""
        return self._plans(problem, query, self._neighbours.get(plan.kernel, ()))

    def rebuild(self, problem: GemmProblem, kernel: str) -> Plan:
        """Return the plan of a scripted kernel that is available."""
        if kernel in self.unavailable or kernel not in self._scripts:
            raise KernelUnavailableError(self.unavailable.get(kernel, f"{kernel} is in no script"))
        return self._plan(problem, kernel)

    def default_rotating_bytes(self, device: str) -> int:
        """Return 3 MiB and a bit, so that rounding shows."""
        del device
        return (3 << 20) + 1

    @contextmanager
    def open_trial(self, problem: GemmProblem, *, rotating_bytes: int) -> Iterator[Trial]:
        """Return a trial on the scripted timer."""
        del rotating_bytes
        if self.is_capture_live:
            raise AssertionError("a trial was opened while a capture was live")
        if self.trial_error is not None:
            raise self.trial_error
        self.trials.append(problem)
        yield _ScriptedTrial(self, problem, self._scripts)

    def is_capturing(self, stream: int | None, device: str | None = None) -> bool:
        """Return what the test says."""
        del stream, device
        return self.is_capture_live

    def _plans(self, problem: GemmProblem, query: CandidateQuery, kernels: Iterable[str]) -> list[Plan]:
        if query.sources is not None and self.name not in query.sources:
            return []
        left_out = self.unordered if query.deterministic else set()
        return [
            self._plan(problem, kernel)
            for kernel in kernels
            if kernel not in self.unavailable and kernel not in left_out
        ]

    def _plan(self, problem: GemmProblem, kernel: str) -> Plan:
        def run(left: NDArray[Any], right: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
            if kernel in self.broken:
                raise LaunchError(f"{kernel} fails by script")
            self.runs.append(kernel)
            product: NDArray[Any] = np.matmul(left, right, out)
            if kernel in self.wrong:
                product[..., -1] = 0
            return product

        return Plan(problem, kernel, run, is_deterministic=kernel not in self.unordered)


class _ScriptedTrial(Trial):
    def __init__(self, backend: ScriptedBackend, problem: GemmProblem, scripts: Mapping[str, Script | float]) -> None:
        rng = np.random.default_rng(0)
        dtype = np.dtype(problem.dtype.name)
        self._backend = backend
        self._left = rng.uniform(-1, 1, (problem.m, problem.k)).astype(dtype)
        self._right = rng.uniform(-1, 1, (problem.k, problem.n)).astype(dtype)
        self.timer = _PlanTimer(ScriptedTimer(scripts))

    def output(self, plan: Plan) -> NDArray[Any]:
        before = list(self._backend.runs)
        try:
            product: NDArray[Any] = plan.run(self._left, self._right, None)
            return product
        finally:
            self._backend.runs[:] = before

    def reference(self) -> NDArray[Any]:
        product: NDArray[Any] = np.matmul(self._left.astype(np.float64), self._right.astype(np.float64))
        return product


class _PlanTimer:
    """The scripted timer, asked by plan."""

    def __init__(self, timer: ScriptedTimer[str]) -> None:
        self._timer = timer

    def warm_up(self, candidate: Plan) -> None:
        self._timer.warm_up(candidate.kernel)

    def screen(self, candidate: Plan, launches: int) -> float:
        return self._timer.screen(candidate.kernel, launches)

    def sample(self, order: Sequence[Plan]) -> Sequence[float]:
        return self._timer.sample([plan.kernel for plan in order])

    def sample_launches(self, candidate: Plan) -> int:
        return self._timer.sample_launches(candidate.kernel)
