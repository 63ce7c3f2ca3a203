"""Plans and descriptors that were built already, so that each is built once and survives until a capture."""

from collections.abc import Callable
from weakref import WeakValueDictionary

from tensorplay.backends.base import Plan
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.gemm import GemmProblem
from tensorplay.locks import ForkSafeLock

__all__ = ["LARGEST", "PlanCache"]

LARGEST = 4096
"""Plans kept; a workload whose shapes never repeat starts over instead of growing."""

_Key = tuple[str, tuple[int, ...]]


class PlanCache:
    """Plans by role and problem; safe in any number of threads.

    Descriptors live as long as a plan of theirs does, here or in use.
    """

    def __init__(self) -> None:
        self._plans: dict[_Key, Plan] = {}
        self._operations: WeakValueDictionary[tuple[int, ...], Operation] = WeakValueDictionary()
        # Taken again by its own thread: building one kind of plan may ask for another.
        self._lock = ForkSafeLock()

    def plan(self, role: str, problem: GemmProblem, build: Callable[[], tuple[Plan, bool]]) -> Plan:
        """Return the plan that plays a role for a problem; `build` makes it, and says whether it may be kept."""
        key = (role, problem.key)
        plan = self._plans.get(key)
        if plan is not None:
            return plan
        with self._lock:
            plan = self._plans.get(key)
            if plan is None:
                plan, is_kept = build()
                if is_kept:
                    if len(self._plans) >= LARGEST:
                        self._plans.clear()
                    self._plans[key] = plan
        return plan

    def operation(self, problem: GemmProblem) -> Operation:
        """Return the problem's descriptors; raises what `Operation` raises."""
        with self._lock:
            operation = self._operations.get(problem.key)
            if operation is None:
                operation = self._operations[problem.key] = Operation(problem)
            return operation

    def clear(self) -> None:
        """Let go of all plans."""
        with self._lock:
            self._plans.clear()
