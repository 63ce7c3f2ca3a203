"""A trial on the host: sets of random operands, and a timer that launches plans on them in turn."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tensorplay.backends.base import Plan, Trial
from tensorplay.backends.host.kernel import Array
from tensorplay.backends.host.machine import free_memory_bytes
from tensorplay.backends.host.operands import CheckedResult, Operands, operand_bytes, random_operands
from tensorplay.backends.host.reference import reference_product
from tensorplay.backends.host.timer import HostTimer
from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.gemm import GemmProblem
from tensorplay.interrupts import is_of_a_handler

__all__ = ["HostTrial", "host_trial"]

_SEED = 0x7450_6C61
_MOST_SETS = 64
# A trial may take this part of free memory: the caller's own operands need room too.
_MEMORY_SHARE = 4


class HostTrial(Trial):
    """Operands of one problem; opened by `host_trial`, which also closes it."""

    timer: HostTimer

    def __init__(self, problem: GemmProblem, sets: int) -> None:
        first = random_operands(problem, _SEED)
        self._problem = problem
        self._operands: Operands | None = first
        self._reference: Array | None = None
        self.timer = HostTimer([first, *(first.copy_for(problem) for _ in range(sets - 1))])

    def output(self, plan: Plan) -> Array:
        """Run the plan once on the check operands and return its result; bfloat16 comes back as float32.

        A plan that writes beside its result is a `LaunchError` too.
        """
        operands, checked = self._checked_operands(), CheckedResult(self._problem)
        out = checked.array
        try:
            result = plan.run(operands.left, operands.right, out)
        except Exception as error:  # f2py raises a class of its own
            if is_of_a_handler(error):
                raise
            raise LaunchError(f"{plan.kernel} failed: {type(error).__name__}: {error}") from error
        if result is not out:
            raise LaunchError(f"{plan.kernel} returned another array than the result that it was given")
        # ml_dtypes' types are of kind V to NumPy, which can do nothing else with them.
        dense: Array = np.array(out, np.float32 if out.dtype.kind == "V" else out.dtype, order="C")
        if checked.is_written_beside():
            raise LaunchError(f"{plan.kernel} writes beside its result")
        return dense

    def reference(self) -> Array:
        """Return the product of the check operands in at least twice the precision; computed once."""
        operands = self._checked_operands()
        if self._reference is None:
            self._reference = reference_product(operands.left, operands.right)
        return self._reference

    def close(self) -> None:
        """Give back all memory."""
        self._operands = self._reference = None
        self.timer.close()

    def _checked_operands(self) -> Operands:
        if self._operands is None:
            raise MeasurementError("this trial is closed")
        return self._operands


@contextmanager
def host_trial(problem: GemmProblem, *, rotating_bytes: int) -> Iterator[HostTrial]:
    """Open a trial whose operands rotate through `rotating_bytes`, and give its memory back at the end.

    Raises
    ------
    MemoryError
        When one set of operands, with the results to compare, is more than a quarter of what is free.
    """
    one = operand_bytes(problem)
    allowed = free_memory_bytes() // _MEMORY_SHARE
    if one > allowed:
        raise MemoryError(
            f"measuring needs {one} bytes of scratch operands; allowed: {allowed}, a quarter of the free memory"
        )
    sets = max(1, min(rotating_bytes // one + 1, allowed // one, _MOST_SETS))
    trial = HostTrial(problem, sets)
    try:
        yield trial
    finally:
        trial.close()
