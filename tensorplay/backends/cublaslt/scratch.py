"""Scratch operands of a problem for measuring: sets of random numbers in one piece of device memory."""

from dataclasses import dataclass
from typing import NamedTuple

from tensorplay.backends.cublaslt.fill import fill
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.backends.cublaslt.number_types import is_float8
from tensorplay.backends.cublaslt.status import check
from tensorplay.backends.host.layout import Layout, left_layout, out_layout, right_layout
from tensorplay.gemm import DType, GemmProblem, dtype_of_name
from tensorplay.measure.numerics import LAST_FACTOR

__all__ = ["Scratch", "ScratchSet", "set_bytes"]

_LINE = 256
_NAN_BYTE = 0xFF
# Far apart: an operand's numbers depend on the seed and the place of the element.
# Exact in every type; neither 1 nor 0, which kernels may treat as special.
_ALPHA, _BETA = 0.75, -0.5
_SEEDS = {"left": 1 << 40, "right": 2 << 40, "c": 3 << 40, "bias": 4 << 40}


class ScratchSet(NamedTuple):
    """One set, as a plan's `run` takes it up to the stream."""

    left: int
    right: int
    out: int
    c: int
    bias: int
    alpha: float
    beta: float


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    dtype: DType
    layout: Layout

    @property
    def nbytes(self) -> int:
        return self.layout.elements * self.dtype.itemsize


def _addend_dtype(problem: GemmProblem) -> DType:
    """Return the type of `c` and the bias: the result's, but bfloat16 where that is FP8."""
    out = problem.out_dtype or problem.dtype
    return (dtype_of_name("bfloat16") or out) if is_float8(out) else out


def _parts(problem: GemmProblem) -> list[_Part]:
    out = problem.out_dtype or problem.dtype
    parts = [
        _Part("left", problem.dtype, left_layout(problem)),
        _Part("right", problem.dtype, right_layout(problem)),
        _Part("out", out, out_layout(problem)),
    ]
    addend = _addend_dtype(problem)
    if problem.accumulate:
        parts.append(_Part("c", addend, out_layout(problem)))
    if problem.bias:
        parts.append(_Part("bias", addend, Layout(1, 1, problem.n, problem.n, problem.n)))
    return parts


def _room(part: _Part) -> int:
    # One line more: an operand of a lesser alignment begins a few bytes into its room.
    return -(-(part.nbytes + 16) // _LINE) * _LINE


def set_bytes(problem: GemmProblem) -> int:
    """Return the device memory of one set, without making it."""
    return sum(_room(part) for part in _parts(problem))


class Scratch:
    """Sets of operands of one problem, with the same numbers in each; give the memory back with `free`.

    The last factors of each sum are of one size, `LAST_FACTOR`, so that a dropped end of a sum shows.

    What lies between rows is NaN, and so are the results. Addresses are multiples of the problem's alignment and,
    below 16, of no more. The device's context must be current when it is made.
    """

    def __init__(self, problem: GemmProblem, ordinal: int, sets: int, stream: int) -> None:
        self.problem = problem
        self._stream = stream
        self._parts = {part.name: part for part in _parts(problem)}
        self._step = set_bytes(problem)
        self._buffer = DeviceBuffer(ordinal, self._step * sets)
        try:
            self._fill(ordinal, sets)
        except BaseException:
            self._buffer.free()
            raise
        self.sets = [self._set(self._buffer.address + place * self._step) for place in range(sets)]

    def part(self, name: str) -> tuple[int, DType, Layout]:
        """Return address, type and layout of an operand of the first set."""
        part = self._parts[name]
        return self._addresses(self._buffer.address)[name], part.dtype, part.layout

    def spoil_output(self) -> None:
        """Enqueue overwriting the first set's result with NaN."""
        address, dtype, layout = self.part("out")
        nbytes = layout.elements * dtype.itemsize
        check(driver().cuMemsetD8Async(address, _NAN_BYTE, nbytes, self._stream), "clearing a result")

    def free(self) -> None:
        """Give the memory back; nothing may be running on it."""
        self._buffer.free()

    def _fill(self, ordinal: int, sets: int) -> None:
        cuda, stream, base = driver(), self._stream, self._buffer.address
        check(cuda.cuMemsetD8Async(base, _NAN_BYTE, self._step, stream), "clearing operands")
        addresses = self._addresses(base)
        for name, seed in _SEEDS.items():
            if name in self._parts:
                part = self._parts[name]
                fill(ordinal, stream, addresses[name], part.dtype, part.layout, seed)
        for name in ("left", "right"):
            part = self._parts[name]
            offset, last = _last_factors(self.problem, name, part.layout)
            address = addresses[name] + offset * part.dtype.itemsize
            fill(ordinal, stream, address, part.dtype, last, _SEEDS[name], size=LAST_FACTOR)
        done = 1
        while done < sets:
            count = min(done, sets - done)
            copied = cuda.cuMemcpyDtoDAsync(base + done * self._step, base, count * self._step, stream)
            check(copied, "copying operands")
            done += count

    def _addresses(self, base: int) -> dict[str, int]:
        addresses = {}
        for part in self._parts.values():
            # A wider result is aligned to its own elements at least.
            addresses[part.name] = base + max(self.problem.alignment, part.dtype.itemsize) % 16
            base += _room(part)
        return addresses

    def _set(self, base: int) -> ScratchSet:
        addresses = self._addresses(base)
        return ScratchSet(
            left=addresses["left"],
            right=addresses["right"],
            out=addresses["out"],
            c=addresses.get("c", 0),
            bias=addresses.get("bias", 0),
            alpha=_ALPHA,
            beta=_BETA if self.problem.accumulate else 0.0,
        )


def _last_factors(problem: GemmProblem, name: str, layout: Layout) -> tuple[int, Layout]:
    """Return where the last factor of each sum lies in an operand: the first of them, in elements, and the layout."""
    is_by_rows = problem.transpose_left if name == "left" else not problem.transpose_right
    if is_by_rows:
        return (layout.rows - 1) * layout.ld, Layout(layout.batch, 1, layout.columns, layout.ld, layout.stride)
    return layout.columns - 1, Layout(layout.batch, layout.rows, 1, layout.ld, layout.stride)
