"""Neighbours of an algorithm: configurations that differ from it in little, each checked by the library."""

from collections.abc import Iterator
from dataclasses import fields, replace
from weakref import ref

from tensorplay.backends.cublaslt.algorithm import Algorithm, build
from tensorplay.backends.cublaslt.capabilities import algorithm_ids, capabilities_of, tile_size
from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.number_types import NumberTypes
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.steps import OWN_SPLIT, first_steps, steps
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import LtKernelId

__all__ = ["neighbour_algorithms"]

# Values of attributes whose outcomes are remembered, and checked configurations of one operation: the oldest go first.
_MOST_OUTCOMES, _MOST_CHECKED = 4096, 8192
# So many refusals, and nothing else, put a value last.
_REFUSALS = 6
_NARROW_BYTES = 2
_NO_LIMIT = 2**62
_NAMES = tuple(field.name for field in fields(LtKernelId))

# The types that are multiplied, an algorithm id, an attribute and its value.
_Value = tuple[NumberTypes, int, str, int]
_Checked = dict[LtKernelId, Algorithm | None]


def neighbour_algorithms(
    operation: Operation, kernel_id: LtKernelId, *, ceiling: int, deterministic: bool = False
) -> Iterator[Algorithm]:
    """Yield checked algorithms one step away from a configuration, most promising first.

    The steps are those of `steps`: one attribute at a time, and pairs that belong together; then configurations of
    other algorithms that are as near. What the library never accepted so far comes last. Algorithms that need more
    than `ceiling` bytes of scratch memory are left out. So are split sums: all with `deterministic`; else those whose
    parts are rounded to a result of 16 bits or fewer, as in the library's own list.

    Each check takes some 20 microseconds, and one in four passes: take as many as are wanted.
    """
    ordinal = int(operation.problem.device)
    checked = _checked_of(operation)
    late: list[LtKernelId] = []

    def passed(each: LtKernelId) -> Iterator[Algorithm]:
        algorithm = _built(operation, kernel_id, each, checked)
        if algorithm is not None and algorithm.workspace_bytes <= ceiling:
            yield algorithm

    for each in _all_steps(ordinal, operation, kernel_id, _reductions(operation, deterministic=deterministic)):
        if each not in checked and _is_hopeless(operation.types, kernel_id, each):
            late.append(each)
        else:
            yield from passed(each)
    for each in late:
        yield from passed(each)


def _all_steps(
    ordinal: int, operation: Operation, kernel_id: LtKernelId, reductions: tuple[int, ...]
) -> Iterator[LtKernelId]:
    at = kernel_id
    if at.splitk == OWN_SPLIT or at.red:
        unsplit = replace(at, splitk=1, red=0)
        if at.red not in reductions:
            # The library's first choice may be what is not wanted of others.
            yield unsplit
            at = unsplit
    may = capabilities_of(ordinal, operation.types, at.id)
    if may is not None:
        yield from steps(at, may, reductions=reductions, tile_size=tile_size)
    for other in algorithm_ids(ordinal, operation.types):
        may = capabilities_of(ordinal, operation.types, other) if other != at.id else None
        if may is not None:
            yield from first_steps(at, other, may, tile_size=tile_size)


def _reductions(operation: Operation, *, deterministic: bool) -> tuple[int, ...]:
    if deterministic:
        return ()
    return (2,) if operation.problem.result_type.itemsize <= _NARROW_BYTES else (2, 1, 4)


def _built(operation: Operation, start: LtKernelId, each: LtKernelId, checked: _Checked) -> Algorithm | None:
    """Return the algorithm of a step, None where it does not run; the library is asked once for an operation."""
    if each in checked:
        return checked[each]
    ordinal = int(operation.problem.device)
    try:
        with current(ordinal):
            algorithm = build(handle_of(ordinal), operation, each, ceiling=_NO_LIMIT)
    except KernelUnavailableError:
        algorithm = None
    while len(checked) >= _MOST_CHECKED:
        del checked[next(iter(checked))]
    checked[each] = algorithm
    _learn(operation.types, start, each, has_passed=algorithm is not None)
    return algorithm


# How often a value passed, and how often it was refused, in single steps of this process.
_outcomes: dict[_Value, tuple[int, int]] = {}
# Of each device the operation whose neighbours were asked for last: others ask for the same ones again.
_latest: dict[int, tuple[ref[Operation], _Checked]] = {}


def _checked_of(operation: Operation) -> _Checked:
    ordinal = int(operation.problem.device)
    known = _latest.get(ordinal)
    if known is not None and known[0]() is operation:
        return known[1]
    checked: _Checked = {}
    _latest[ordinal] = (ref(operation), checked)
    return checked


def _values(types: NumberTypes, start: LtKernelId, each: LtKernelId) -> list[_Value]:
    changed = [name for name in _NAMES if getattr(start, name) != getattr(each, name)]
    return [(types, each.id, name, getattr(each, name)) for name in changed]


def _is_hopeless(types: NumberTypes, start: LtKernelId, each: LtKernelId) -> bool:
    outcomes = (_outcomes.get(value, (0, 0)) for value in _values(types, start, each))
    return any(passes == 0 and refusals >= _REFUSALS for passes, refusals in outcomes)


def _learn(types: NumberTypes, start: LtKernelId, each: LtKernelId, *, has_passed: bool) -> None:
    values = _values(types, start, each)
    if not has_passed and len(values) > 1:
        # Which of them is to blame is not known.
        return
    for value in values:
        passes, refusals = _outcomes.pop(value, (0, 0))
        _outcomes[value] = (passes + has_passed, refusals + (not has_passed))
    while len(_outcomes) > _MOST_OUTCOMES:
        del _outcomes[next(iter(_outcomes))]
