"""How a skinny kernel is built: the attributes that are searched, and which of them go together."""

from dataclasses import astuple, dataclass, fields

from tensorplay.backends.cublaslt.skinny.shape import Shape
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import SourceKernelId

__all__ = ["RUNS", "SOURCE", "Configuration", "has_ring"]

SOURCE = "skinny"
"""The first word of the kernel ids."""

RUNS = (16, 32, 64)
"""Values of `vec` of a ring."""

_RING, _WIDEST = 2, 16
_LARGEST_SPLIT = 8
_MOST_STAGES = 8
_MOST_WARPS = 16
# Within a warp's rows, offsets are counted in 32 bits.
_LARGEST_OFFSET = 2**31
_WARP = 32
# What a block has when it asks for more than is given to all.
_MOST_SHARED_BYTES = 227 << 10
# A thread has 255 registers and a block 65536; beside those for operands and sums this many are for addresses.
_MOST_REGISTERS, _BLOCK_REGISTERS, _OTHER_REGISTERS = 176, 65536, 40


@dataclass(frozen=True, slots=True)
class Configuration:
    """The attributes of a skinny kernel; each combination that `check` lets pass can be built.

    Attributes
    ----------
    mma : int
        0 for multiply-adds, 1 for matrix instructions, 2 for those with the stages in shared memory.
    tile : int
        Rows of the weight that a block takes.
    rows : int
        Of these, how many a warp takes; warps that take the same share out the depth.
    split : int
        Blocks, of one cluster, that share out the depth: 1, 2, 4 or 8.
    vec : int
        Bytes of one load from the weight; of a ring, an eighth of what is copied of a row at a time.
    stages : int
        Chunks of the depth that a warp has in flight.
    threads : int
        Of a block.
    """

    mma: int
    tile: int
    rows: int
    split: int
    vec: int
    stages: int
    threads: int

    @property
    def kernel_id(self) -> SourceKernelId:
        """Return the text's parts: every attribute, in this order."""
        names = [field.name for field in fields(self)]
        return SourceKernelId(SOURCE, tuple(zip(names, astuple(self), strict=True)))

    @classmethod
    def of(cls, kernel_id: SourceKernelId) -> "Configuration":
        """Return what a kernel id names; `KernelUnavailableError` when its attributes are others."""
        names = [field.name for field in fields(cls)]
        if kernel_id.source != SOURCE or [name for name, _ in kernel_id.options] != names:
            raise KernelUnavailableError(f"{kernel_id} is no skinny kernel; one has {', '.join(names)}, in this order")
        return cls(**dict(kernel_id.options))

    @property
    def warps(self) -> int:
        """Return how many warps a block has."""
        return self.threads // _WARP

    @property
    def depth_warps(self) -> int:
        """Return how many warps of a block share out the depth."""
        return self.warps // (self.tile // self.rows)

    def span(self, shape: Shape) -> int:
        """Return the elements that a lane reads side by side."""
        return max(self.vec, 4) // shape.dtype.itemsize

    def chunk(self, shape: Shape) -> int:
        """Return the steps of the depth that a warp adds up at a time."""
        if self.mma == _RING and shape.is_along:
            return 8 * self.vec // shape.dtype.itemsize
        if shape.is_along:
            return 32 if self.mma else _WARP * self.span(shape)
        return 16 if self.mma else 4

    def rows_step(self, shape: Shape) -> int:
        """Return what the rows of a warp are a multiple of."""
        if shape.is_along:
            return 8 if self.mma else 1
        return (8 if self.mma else _WARP) * self.span(shape)

    def shared_bytes(self, shape: Shape) -> int:
        """Return the shared memory of a block, which holds the sums of its warps, and before them their rings."""
        sums = self.depth_warps * self.tile * shape.columns * 4
        if self.mma != _RING:
            return sums
        lines = (self.rows + _eights(shape)) * self.chunk(shape) * shape.dtype.itemsize
        return max(sums, self.warps * self.stages * lines)

    def check(self, shape: Shape) -> None:
        """Raise `KernelUnavailableError`, with the reason, when there is no such kernel for a shape."""
        reason = self._reason(shape)
        if reason is not None:
            raise KernelUnavailableError(f"{self.kernel_id} cannot be: {reason}")

    def _reason(self, shape: Shape) -> str | None:
        reason = self._why_no_loads(shape)
        if reason is not None:
            return reason
        if self.split not in {1, 2, 4, 8}:
            return f"split is a power of two up to {_LARGEST_SPLIT}"
        if not 1 <= self.stages <= _MOST_STAGES:
            return f"stages are 1 to {_MOST_STAGES}"
        if self.threads % _WARP or not 1 <= self.warps <= _MOST_WARPS:
            return f"threads are a multiple of {_WARP} up to {_WARP * _MOST_WARPS}"
        step = self.rows_step(shape)
        if self.rows < 1 or self.rows % step:
            return f"rows are a multiple of {step}"
        if self.tile < 1 or self.tile % self.rows or self.warps % (self.tile // self.rows):
            return "tile is so many times rows that its warps can be shared out evenly"
        offset = self.rows * shape.weight_ld * shape.dtype.itemsize
        if offset >= _LARGEST_OFFSET:
            return f"the rows of a warp lie up to {offset} bytes apart"
        if self.shared_bytes(shape) > _MOST_SHARED_BYTES:
            return f"it takes {self.shared_bytes(shape)} bytes of shared memory, a block has {_MOST_SHARED_BYTES}"
        room = min(_MOST_REGISTERS, _BLOCK_REGISTERS // self.threads - _OTHER_REGISTERS)
        if self.registers(shape) > room:
            return f"a thread holds {self.registers(shape)} words of operands and sums, it has room for {room}"
        return None

    def _why_no_loads(self, shape: Shape) -> str | None:
        """Return why there are no such instructions, or no such loads for them."""
        item = shape.dtype.itemsize
        if self.mma not in {0, 1, _RING} or (self.mma and item != 2):
            return "mma is 0, or for half types 1 or 2"
        if self.mma == _RING:
            if not has_ring(shape):
                return f"mma 2 takes stored rows, of the weight and of x, that are whole {_WIDEST} bytes"
            if self.vec not in (RUNS if shape.is_along else RUNS[:1]):
                return f"vec of mma 2 is one of {', '.join(map(str, RUNS))} along stored rows, else {_WIDEST}"
        elif self.vec not in {16, 8, 4, 2} or not item <= self.vec <= shape.weight_alignment:
            return f"vec is a power of two from {item} to {shape.weight_alignment}, the alignment of the weight's rows"
        return None

    def registers(self, shape: Shape) -> int:
        """Return the registers that hold operands and sums."""
        item, span = shape.dtype.itemsize, self.span(shape)
        if self.mma == _RING:
            return self.rows // 2 + 16 + self.rows // 4
        if self.mma:
            a_row, a_column = (4, 4) if shape.is_along else (2, 2)
            return self.stages * (self.rows // 8 * a_row + _eights(shape) // 8 * a_column) + self.rows // 2
        if shape.is_along:
            words = span * item // 4
            return self.stages * words * (self.rows + shape.columns) + self.rows * shape.columns
        a_lane = self.rows // _WARP
        return self.stages * (a_lane + shape.columns) * item + a_lane * shape.columns


def has_ring(shape: Shape) -> bool:
    """Return whether a shape's operands can be copied into a ring, 16 bytes at a time."""
    is_whole = shape.is_along or shape.rows * shape.dtype.itemsize % _WIDEST == 0
    return shape.dtype.itemsize == 2 and is_whole and min(shape.weight_alignment, shape.x_alignment) == _WIDEST


def _eights(shape: Shape) -> int:
    """Return the columns that matrix instructions take."""
    return -(-shape.columns // 8) * 8
