"""Scratch operands of a problem for measuring: sets of random numbers in one piece of device memory."""

import random
from dataclasses import dataclass
from typing import NamedTuple

from tensorplay.backends.cublaslt.fill import UNIFORM, fill
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.backends.cublaslt.number_types import addend_dtype, bias_dtype
from tensorplay.backends.cublaslt.status import check
from tensorplay.backends.host.layout import Layout, left_layout, out_layout, right_layout
from tensorplay.gemm import DType, GemmProblem
from tensorplay.measure.check_operands import ALPHA, BETA, Sizes, check_numbers

__all__ = ["GUARD_BYTES", "UNWRITTEN", "Scratch", "ScratchSet", "operand_bytes", "set_bytes"]

GUARD_BYTES = 256
"""Bytes beside each operand, on both sides of the result, in which nothing is written."""

UNWRITTEN = 0xFF
"""What each byte of a result is that nothing was written to: a number of such bytes is no number, in every type."""

# Operands of programs begin at such multiples or are small; beside odd ones a kernel of 8 us reads its rows 3 %
# slower, some kernels more than others.
_PAGE_BYTES = 1 << 16

# How operands of programs lie to each other differs from call to call, and kernels of some microseconds are up to 4 %
# slower in one place than in another. So sets differ too: each operand begins some of its pages later, in as many ways.
_PLACES = 16
_MOST_PAGES_LATER = 3

# No numbers either, in every type, but other ones: arithmetic on what is beside operands may hand them on.
_BESIDE_OPERANDS = 0x7FFF7FFF

# Far apart: an operand's numbers depend on the seed and the place of the element.
_SEEDS = {"left": 1 << 40, "right": 2 << 40, "c": 3 << 40, "bias": 4 << 40, "negated bias": 4 << 40}


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

    @property
    def room(self) -> int:
        # An operand of a lesser alignment begins a few bytes into its room.
        return _rounded(self.nbytes + 16, GUARD_BYTES) + GUARD_BYTES

    @property
    def page_bytes(self) -> int:
        return max(GUARD_BYTES, min(_PAGE_BYTES, 1 << (self.nbytes - 1).bit_length()))


def _parts(problem: GemmProblem) -> list[_Part]:
    result = problem.result_type
    parts = [
        _Part("left", problem.left_type, left_layout(problem)),
        _Part("right", problem.dtype, right_layout(problem)),
        _Part("out", result, out_layout(problem)),
    ]
    if problem.accumulate:
        parts.append(_Part("c", addend_dtype(result), out_layout(problem)))
    if problem.bias:
        n = problem.n
        dtype = bias_dtype(problem.dtype, result)
        parts += [_Part(name, dtype, Layout(1, 1, n, n, n)) for name in ("bias", "negated bias")]
    return parts


def set_bytes(problem: GemmProblem) -> int:
    """Return the device memory of one set with what is between its operands, without making it."""
    return _layouts(_parts(problem))[1]


def operand_bytes(problem: GemmProblem) -> int:
    """Return how much of a set a product touches, and so what it brings into a cache."""
    return sum(part.nbytes for part in _parts(problem) if part.name != "negated bias")


def _offsets(parts: list[_Part], place: int) -> tuple[dict[str, int], int]:
    """Return where in a set each operand's room begins, and where the last one ends; a set's place decides it."""
    # The same in each process, so that what is measured again is measured alike.
    rng = random.Random(place)  # noqa: S311 - a layout, not a secret
    offsets, end = {}, 0
    for part in parts:
        later = rng.randint(0, _MOST_PAGES_LATER) if place else 0
        offsets[part.name] = begin = _rounded(end, part.page_bytes) + later * part.page_bytes
        end = begin + part.room
    return offsets, end


def _layouts(parts: list[_Part]) -> tuple[list[dict[str, int]], int]:
    """Return the offsets of a set at each place, and how far sets are apart whatever their places."""
    offsets, ends = zip(*(_offsets(parts, place) for place in range(_PLACES)), strict=True)
    return list(offsets), _rounded(max(ends), max(part.page_bytes for part in parts))


def _rounded(number: int, step: int) -> int:
    return -(-number // step) * step


class Scratch:
    """Sets of operands of one problem, with the same numbers in each; give the memory back with `free`.

    The numbers are those of `check_operands`. What lies between rows and beside operands is NaN, and so are the
    results. Addresses are multiples of the problem's alignment and, below 16, of no more. The device's context must be
    current when it is made.

    Attributes
    ----------
    sets : list of ScratchSet
        To be timed on, with an alpha of 1, and a beta of 1 where `c` is read.
    checks : tuple of ScratchSet
        Ways to multiply the first set, in all of which a plan must be right: as it is timed, and with another alpha,
        beta and bias, the addend then lying in the result, where their type is one. `prepare` comes before each.
    """

    def __init__(self, problem: GemmProblem, ordinal: int, sets: int, stream: int) -> None:
        self.problem = problem
        self._stream = stream
        parts = _parts(problem)
        self._parts = {part.name: part for part in parts}
        self._offsets, self._step = _layouts(parts)
        self._buffer = DeviceBuffer(ordinal, self._step * sets + _PAGE_BYTES)
        self._base = _rounded(self._buffer.address, _PAGE_BYTES)
        try:
            self._fill(ordinal, sets)
        except BaseException:
            self._buffer.free()
            raise
        self.sets = [self._set(place) for place in range(sets)]
        self.checks = (self.sets[0], self._scaled(self.sets[0]))

    def part(self, name: str) -> tuple[int, DType, Layout]:
        """Return address, type and layout of an operand of the first set."""
        part = self._parts[name]
        return self._addresses(0)[name], part.dtype, part.layout

    def guarded_output(self) -> tuple[int, int]:
        """Return address and bytes of the first set's result with the guards on both sides."""
        address, dtype, layout = self.part("out")
        return address - GUARD_BYTES, layout.elements * dtype.itemsize + 2 * GUARD_BYTES

    def spoil_output(self) -> None:
        """Enqueue overwriting the first set's result, and what is beside it, with NaN."""
        address, nbytes = self.guarded_output()
        check(driver().cuMemsetD8Async(address, UNWRITTEN, nbytes, self._stream), "clearing a result")

    def prepare(self, operands: ScratchSet) -> None:
        """Enqueue what one of `checks` begins with: the addend where it lies in the result, else NaN, as beside it."""
        self.spoil_output()
        if operands.beta and not operands.c:
            addend, nbytes = self.part("c")[0], self._parts["c"].nbytes
            copied = driver().cuMemcpyDtoDAsync(operands.out, addend, nbytes, self._stream)
            check(copied, "copying an addend")

    def free(self) -> None:
        """Give the memory back; nothing may be running on it."""
        self._buffer.free()

    def _fill(self, ordinal: int, sets: int) -> None:
        cuda, stream, base = driver(), self._stream, self._base
        places = min(sets, _PLACES)
        check(cuda.cuMemsetD32Async(base, _BESIDE_OPERANDS, places * self._step // 4, stream), "clearing operands")
        addresses = self._addresses(0)
        if "c" in self._parts:
            # Copied into results, with what is between its rows.
            nbytes = self._parts["c"].nbytes
            check(cuda.cuMemsetD8Async(addresses["c"], UNWRITTEN, nbytes, stream), "clearing an addend")

        def fill_part(name: str, layout: Layout, sizes: Sizes, offset: int = 0) -> None:
            dtype = self._parts[name].dtype
            fill(ordinal, stream, addresses[name] + offset * dtype.itemsize, dtype, layout, _SEEDS[name], sizes)

        numbers = check_numbers(self.problem.k)
        negated = Sizes(-numbers.addend.low, -numbers.addend.high)
        for name, sizes in (("c", numbers.addend), ("bias", numbers.addend), ("negated bias", negated)):
            if name in self._parts:
                fill_part(name, self._parts[name].layout, sizes)
        for name, first in (("left", numbers.last), ("right", numbers.first)):
            layout = self._parts[name].layout
            fill_part(name, layout, UNIFORM)
            last, ends = _ends(self.problem, name, layout)
            if numbers.first and first:
                fill_part(name, ends, first)
            fill_part(name, ends, numbers.last, last)
        for place in range(1, places):
            for name, part in self._parts.items():
                there = base + place * self._step + self._offsets[place][name]
                copied = cuda.cuMemcpyDtoDAsync(there, base + self._offsets[0][name], part.room, stream)
                check(copied, "copying an operand")
        done = places
        while done < sets:
            # As many as all places, or twice, four times as many: what lies where repeats.
            count = min(done, sets - done)
            copied = cuda.cuMemcpyDtoDAsync(base + done * self._step, base, count * self._step, stream)
            check(copied, "copying operands")
            done += count

    def _addresses(self, number: int) -> dict[str, int]:
        base, offsets = self._base + number * self._step, self._offsets[number % _PLACES]
        # A wider result is aligned to its own elements at least.
        return {
            name: base + offsets[name] + max(self.problem.alignment, part.dtype.itemsize) % 16
            for name, part in self._parts.items()
        }

    def _set(self, number: int) -> ScratchSet:
        addresses = self._addresses(number)
        return ScratchSet(
            left=addresses["left"],
            right=addresses["right"],
            out=addresses["out"],
            c=addresses.get("c", 0),
            bias=addresses.get("bias", 0),
            alpha=1.0,
            beta=1.0 if self.problem.accumulate else 0.0,
        )

    def _scaled(self, plain: ScratchSet) -> ScratchSet:
        scaled = plain._replace(alpha=ALPHA)
        if self.problem.bias:
            scaled = scaled._replace(bias=self.part("negated bias")[0])
        if self.problem.accumulate:
            is_in_place = self._parts["c"].dtype == self._parts["out"].dtype
            scaled = scaled._replace(beta=BETA, c=0 if is_in_place else plain.c)
        return scaled


def _ends(problem: GemmProblem, name: str, layout: Layout) -> tuple[int, Layout]:
    """Return how the first factor of each sum lies in an operand, and how many elements behind it the last does."""
    is_by_rows = problem.transpose_left if name == "left" else not problem.transpose_right
    if is_by_rows:
        return (layout.rows - 1) * layout.ld, Layout(layout.batch, 1, layout.columns, layout.ld, layout.stride)
    return layout.columns - 1, Layout(layout.batch, layout.rows, 1, layout.ld, layout.stride)
