"""A trial on a GPU: scratch operands on the device, a timer, and results brought to the host for comparison."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorplay.backends.base import Plan, Trial
from tensorplay.backends.cublaslt.closeness import Comparison
from tensorplay.backends.cublaslt.device import current, device, relaxed_capture
from tensorplay.backends.cublaslt.host_copy import bytes_from_device, laid_out, widened
from tensorplay.backends.cublaslt.reference import check_results
from tensorplay.backends.cublaslt.scratch import GUARD_BYTES, UNWRITTEN, Scratch, ScratchSet, operand_bytes, set_bytes
from tensorplay.backends.cublaslt.spin import warm_clocks
from tensorplay.backends.cublaslt.stream import private_stream, synchronize
from tensorplay.backends.cublaslt.timer import CudaTimer
from tensorplay.backends.cublaslt.trial_kernels import begin_compiling_for
from tensorplay.backends.cublaslt.workspace import workspaces
from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.gemm import GemmProblem
from tensorplay.locks import ForkSafeLock

__all__ = ["CudaTrial", "cuda_trial"]

_MOST_SETS = 128
# With a single one, however large, a launch would find in the cache what the one before it has read.
_FEWEST_SETS = 2
# A trial may take this part of free memory: the caller's own operands need room too.
_MEMORY_SHARE = 4
_WARMING_NS = 3_000_000


class CudaTrial(Trial):
    """Operands of one problem; opened by `cuda_trial`, which also closes it."""

    timer: CudaTimer

    def __init__(self, problem: GemmProblem, sets: int) -> None:
        self._ordinal = int(problem.device)
        self._problem = problem
        self._stream = private_stream(self._ordinal)
        self._reference: NDArray[Any] | None = None
        self._comparison: Comparison | None = None
        with current(self._ordinal), relaxed_capture():
            self._scratch = Scratch(problem, self._ordinal, sets, self._stream)
            # Runs while the host looks for candidates.
            warm_clocks(self._ordinal, self._stream, _WARMING_NS)
        self.timer = CudaTimer(self._ordinal, self._stream, self._scratch.sets)
        self._is_open = True

    def output(self, plan: Plan) -> NDArray[Any]:
        """Run the plan in each of the ways that it is checked in, and return its results one after the other.

        bfloat16 and FP8 come back as float32. A plan that writes beside its result is a `LaunchError` too.
        """
        self._check_open()
        with current(self._ordinal), relaxed_capture():
            return np.stack([self._result(plan, operands) for operands in self._scratch.checks])

    def closeness(self, first: Plan, *, atol: float, rtol: float) -> Callable[[Plan], bool] | None:
        """Keep the first choice's results on the device, to compare others with them there; None without room."""
        self._check_open()
        _, dtype, _ = self._scratch.part("out")
        address, nbytes = self._scratch.guarded_output()
        checks = self._scratch.checks
        with current(self._ordinal), relaxed_capture():
            self._end_comparison()
            try:
                comparison = Comparison(
                    self._ordinal, self._stream, address, nbytes, dtype, count=len(checks), atol=atol, rtol=rtol
                )
            except MemoryError:
                return None
            self._comparison = comparison
            for which, operands in enumerate(checks):
                self._enqueue_checked(first, operands)
                comparison.keep(which)
            synchronize(self._stream)
        return self._is_close

    def reference(self) -> NDArray[Any]:
        """Return the results that `output` should give, in at least twice the precision; computed once."""
        self._check_open()
        if self._reference is None:
            with current(self._ordinal), relaxed_capture():
                self._reference = check_results(self._scratch, self._stream)
        return self._reference

    def _is_close(self, plan: Plan) -> bool:
        self._check_open()
        comparison = self._comparison
        if comparison is None:
            return False
        with current(self._ordinal), relaxed_capture():
            comparison.begin()
            for which, operands in enumerate(self._scratch.checks):
                self._enqueue_checked(plan, operands)
                comparison.compare(which)
            return comparison.are_close()

    def close(self) -> None:
        """Give back all memory, graphs and events, also after a failure."""
        self._is_open = False
        self._reference = None
        with current(self._ordinal), relaxed_capture():
            try:
                synchronize(self._stream)
            finally:
                try:
                    self.timer.close()
                finally:
                    try:
                        self._end_comparison()
                    finally:
                        self._scratch.free()

    def _result(self, plan: Plan, operands: ScratchSet) -> NDArray[Any]:
        self._enqueue_checked(plan, operands)
        _, dtype, layout = self._scratch.part("out")
        memory = bytes_from_device(*self._scratch.guarded_output(), self._stream)
        stored = laid_out(memory[GUARD_BYTES:-GUARD_BYTES], dtype, layout)
        result = np.array(widened(stored, dtype))
        stored.view(np.uint8)[...] = UNWRITTEN
        if not (memory == UNWRITTEN).all():
            raise LaunchError(f"{plan.kernel} writes beside its result")
        return result

    def _enqueue_checked(self, plan: Plan, operands: ScratchSet) -> None:
        self._scratch.prepare(operands)
        try:
            plan.run(*operands, self._stream)
        except (TypeError, ValueError, MemoryError) as error:
            raise LaunchError(f"{plan.kernel} failed: {type(error).__name__}: {error}") from error

    def _end_comparison(self) -> None:
        comparison, self._comparison = self._comparison, None
        if comparison is not None:
            comparison.free()

    def _check_open(self) -> None:
        if not self._is_open:
            raise MeasurementError("this trial is closed")


@contextmanager
def cuda_trial(problem: GemmProblem, *, rotating_bytes: int) -> Iterator[CudaTrial]:
    """Open a trial whose operands rotate through `rotating_bytes`, and give its memory back at the end.

    Another thread's trial on the device waits until this one is closed.

    Raises
    ------
    MemoryError
        When one set of operands is more than a quarter of what is free.
    MeasurementError
        When the same thread has a trial open on the device already: both would use its stream.
    """
    ordinal = int(problem.device)
    begin_compiling_for(problem.dtype, device(ordinal).capability)
    one, allowed = set_bytes(problem), device(ordinal).free_bytes // _MEMORY_SHARE
    if one > allowed:
        raise MemoryError(
            f"measuring needs {one} bytes of scratch operands; allowed: {allowed}, a quarter of the free memory"
        )
    wanted = max(_FEWEST_SETS, rotating_bytes // operand_bytes(problem) + 1) if rotating_bytes else 1
    sets = max(1, min(wanted, allowed // one, _MOST_SETS))
    buffers, stream = workspaces(ordinal), private_stream(ordinal)
    lock = _one_at_a_time(ordinal)
    if lock.is_held_here():
        raise MeasurementError(
            f"this thread is measuring on device {ordinal} already, under a signal handler's product"
        )
    # Two at once would share the stream, and one's capture would take in the other's launches.
    with lock:
        buffers.lend(stream)
        try:
            trial = CudaTrial(problem, sets)
            try:
                yield trial
            finally:
                trial.close()
        finally:
            buffers.take_back(stream)


_locks: dict[int, ForkSafeLock] = {}


def _one_at_a_time(ordinal: int) -> ForkSafeLock:
    return _locks.setdefault(ordinal, ForkSafeLock())
