"""One cell's contest: a loop of ours, one call of the library of each kind, and a loop of torch's, by turns."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from harness.timing import Contestant, interleave

from grouped.cell import Cell, Operands
from tensorplay import mm
from tensorplay.backends.cublaslt import grouped_limits
from tensorplay.cuda import grouped_mm
from tensorplay.measure.statistics import median
from tensorplay.ops.device import grouped as public

__all__ = ["Times", "contest", "without_limits"]

BLOCK_SECONDS = 0.004
_MOST_LOOPS = 100
_NO_LIMIT = 1 << 62
_WARMING = 3
# Relative to the magnitudes of a sum's parts; what is wrong is off by much more.
_TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2}


class Times(NamedTuple):
    """Microseconds of a group, one value a round: `total` until the device is done, `host` until all is enqueued."""

    total: Mapping[str, list[float]]
    host: Mapping[str, float]


def contest(cell: Cell, *, rounds: int, rng: random.Random) -> Times:
    """Let all run by turns; the names are `loop`, `grouped`, `torch`, and `batched` for products that are alike.

    Raises
    ------
    RuntimeError
        When one gives wrong results.
    """
    operands = cell.operands()
    calls = _calls(cell, operands)
    for name, call in calls.items():
        for _ in range(_WARMING):
            call()
        _check(cell, name, operands)
    fastest = min(_seconds(call, 3) for call in calls.values())
    loops = max(1, min(_MOST_LOOPS, round(BLOCK_SECONDS / fastest)))
    contestants = {name: Contestant(_block_of(call)) for name, call in calls.items()}
    values = interleave(contestants, rounds=rounds, loops=loops, rng=rng)
    host = {name: 1e6 * median([_enqueued(call) for _ in range(2 * rounds)]) for name, call in calls.items()}
    return Times({name: [1e6 * value for value in each] for name, each in values.items()}, host)


@contextmanager
def without_limits() -> Iterator[None]:
    """Let `grouped_mm` make one call of every group, however few or large its products are."""
    limits = grouped_limits
    most, least, batched = dict(limits.MOST_MULTIPLICATIONS), limits.LEAST_PRODUCTS, limits.UNIFORM_IS_BATCHED
    limits.MOST_MULTIPLICATIONS.update(dict.fromkeys(most, _NO_LIMIT))
    limits.LEAST_PRODUCTS = 2
    setattr(public, "mm", _refuse)  # noqa: B010 - its import is no name of the module to the type checker
    try:
        yield
    finally:
        limits.MOST_MULTIPLICATIONS.update(most)
        limits.LEAST_PRODUCTS, limits.UNIFORM_IS_BATCHED = least, batched
        setattr(public, "mm", mm)  # noqa: B010 - as above


def _refuse(*_: object, **__: object) -> None:
    raise RuntimeError("a group that was to be one call of the library ran one by one")


def _calls(cell: Cell, operands: Operands) -> dict[str, Callable[[], object]]:
    import torch

    left, right, out = operands

    def looped() -> None:
        for a, b, c in zip(left, right, out, strict=True):
            mm(a, b, out=c)

    def torch_looped() -> None:
        for a, b, c in zip(left, right, out, strict=True):
            torch.mm(a, b, out=c)

    def at_once(*, batched: bool) -> Callable[[], object]:
        def call() -> object:
            grouped_limits.UNIFORM_IS_BATCHED = batched
            return grouped_mm(left, right, out=out)

        return call

    calls = {"loop": looped, "grouped": at_once(batched=False), "torch": torch_looped}
    return calls | ({"batched": at_once(batched=True)} if cell.mix == "alike" else {})


def _check(cell: Cell, name: str, operands: Operands) -> None:
    for a, b, found in zip(*operands, strict=True):
        exact, magnitude = a.double() @ b.double(), a.double().abs() @ b.double().abs()
        error = float(((found.double() - exact).abs() / magnitude).max())
        if not error <= _TOLERANCE[cell.dtype]:
            raise RuntimeError(f"{name} is wrong for {cell}: off by {error:g} of the magnitudes")
        found.fill_(float("nan"))


def _block_of(call: Callable[[], object]) -> Callable[[int], float]:
    return lambda loops: loops * _seconds(call, loops)


def _seconds(call: Callable[[], object], loops: int) -> float:
    """Return the seconds of a call when several follow each other, until the device is done."""
    import torch

    wait: Any = torch.cuda.synchronize
    wait()
    begin = time.perf_counter()
    for _ in range(loops):
        call()
    wait()
    return (time.perf_counter() - begin) / loops


def _enqueued(call: Callable[[], object]) -> float:
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
