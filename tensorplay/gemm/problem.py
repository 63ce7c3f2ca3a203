"""The problem: what one product computes, with everything that decides which kernels are legal or fast."""

import re
from dataclasses import dataclass

from tensorplay.errors import ShapeError
from tensorplay.gemm.dtype import DType

__all__ = ["ACTIVATIONS", "ALIGNMENTS", "CPU", "LARGEST_SIZE", "GemmProblem"]

CPU = "cpu"
ACTIVATIONS = ("none", "relu", "gelu")
# cuBLASLt's widest vector access is 16 bytes; an operand aligned to less can use fewer kernels.
ALIGNMENTS = (16, 8, 4, 2, 1)
# 18 decimal digits always fit a signed 64-bit integer, which is what the libraries take.
LARGEST_SIZE = 10**18 - 1

# One ordinal has one text, since the text is in the signature and the number in the key.
_DEVICE = re.compile(rf"{CPU}|0|[1-9][0-9]{{0,17}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProblem:
    """`out(m, n) = activation(alpha * left(m, k) @ right(k, n) + beta * c + bias)`, all row-major.

    The values of alpha and beta are not part of a problem: kernels take them at run time. Whether beta is
    zero is, since then `c` is never read.

    Attributes
    ----------
    dtype : DType
        Of right, of left unless `left_dtype` says otherwise, and of the result unless `out_dtype` does.
    m, n, k : int
        Row-major sizes, at least 1.
    transpose_right, transpose_left : bool
        The operand is used in place as the transposed view of row-major storage.
    bias : bool
        A vector of n values is added to each row.
    device : str
        The device's ordinal as decimal text, or `cpu`.
    ld_left, ld_right, ld_out : int or None
        Elements from one stored row to the next; None when rows are dense.
    batch : int
        Number of products of the same sizes.
    stride_left, stride_right, stride_out : int or None
        Elements from one product's operand to the next's; None when they are dense, 0 when shared.
    activation : str
        `none`, `relu` or `gelu`.
    accumulate : bool
        Whether beta may be other than zero, so that `c` is read.
    out_dtype : DType or None
        The result's type where it is not `dtype`.
    alignment : int
        Bytes that every operand's address is a multiple of, 16 at most.
    accumulation : DType or None
        The type that products are summed in where it is not the library's plain choice.
    workspace_mib : int or None
        Ceiling of scratch memory in MiB where it is not the default.
    left_dtype : DType or None
        The left operand's type where it is not `dtype`: one type of 8 bits beside the other.

    Raises
    ------
    ShapeError
        When a size, a leading dimension or a class is out of range, or such types are not mixed.
    """

    dtype: DType
    m: int
    n: int
    k: int
    transpose_right: bool = False
    transpose_left: bool = False
    bias: bool = False
    device: str = CPU
    ld_left: int | None = None
    ld_right: int | None = None
    ld_out: int | None = None
    batch: int = 1
    stride_left: int | None = None
    stride_right: int | None = None
    stride_out: int | None = None
    activation: str = "none"
    accumulate: bool = False
    out_dtype: DType | None = None
    alignment: int = 16
    accumulation: DType | None = None
    workspace_mib: int | None = None
    left_dtype: DType | None = None

    def __post_init__(self) -> None:
        for name in ("m", "n", "k", "batch"):
            size = getattr(self, name)
            if not 1 <= size <= LARGEST_SIZE:
                raise ShapeError(f"{name} is {size}; a product to tune has sizes from 1 to {LARGEST_SIZE}")
        for name, least in (
            ("ld_left", self.left_columns),
            ("ld_right", self.right_columns),
            ("ld_out", self.n),
        ):
            ld = getattr(self, name)
            if ld is not None and not least < ld <= LARGEST_SIZE:
                raise ShapeError(f"{name} is {ld}; a padded leading dimension is above {least}, dense is None")
        for name in ("stride_left", "stride_right", "stride_out"):
            stride = getattr(self, name)
            if stride is not None and (self.batch == 1 or not 0 <= stride <= LARGEST_SIZE):
                raise ShapeError(f"{name} is {stride}; only a batch has strides, from 0 to {LARGEST_SIZE}")
        if self.activation not in ACTIVATIONS:
            raise ShapeError(f"activation is {self.activation!r}; allowed: {', '.join(ACTIVATIONS)}")
        if self.alignment not in ALIGNMENTS:
            raise ShapeError(f"alignment is {self.alignment}; allowed: {', '.join(map(str, ALIGNMENTS))}")
        if _DEVICE.fullmatch(self.device) is None:
            raise ShapeError(f"device is {self.device!r}; allowed: {CPU} or a decimal ordinal without leading zeros")
        if self.workspace_mib is not None and not 0 <= self.workspace_mib <= LARGEST_SIZE:
            raise ShapeError(f"workspace_mib is {self.workspace_mib}; allowed: 0 and above")
        if self.left_dtype is not None and not _are_mixed(self.left_dtype, self.dtype):
            raise ShapeError(
                f"left_dtype is {self.left_dtype!r} beside {self.dtype.name}; only two different types of 8 bits are "
                "mixed, None stands for an equal one"
            )

    @property
    def left_columns(self) -> int:
        """Return the length of a stored row of the left operand, in elements."""
        return self.m if self.transpose_left else self.k

    @property
    def right_columns(self) -> int:
        """Return the length of a stored row of the right operand, in elements."""
        return self.k if self.transpose_right else self.n

    @property
    def left_type(self) -> DType:
        """Return the data type of the left operand; that of the right one is `dtype`."""
        return self.left_dtype or self.dtype

    @property
    def result_type(self) -> DType:
        """Return the data type of the result."""
        return self.out_dtype or self.dtype

    @property
    def flops(self) -> int:
        """Return the number of floating-point operations, a multiply-add counted as two."""
        return 2 * self.batch * self.m * self.n * self.k * (4 if self.dtype.is_complex else 1)

    @property
    def key(self) -> tuple[int, ...]:
        """Return the problem as integers: equal keys, equal problems. None is -1, and so is the CPU."""
        return (
            self.dtype.code,
            self.m,
            self.n,
            self.k,
            self.transpose_right,
            self.transpose_left,
            self.bias,
            -1 if self.device == CPU else int(self.device),
            -1 if self.ld_left is None else self.ld_left,
            -1 if self.ld_right is None else self.ld_right,
            -1 if self.ld_out is None else self.ld_out,
            self.batch,
            -1 if self.stride_left is None else self.stride_left,
            -1 if self.stride_right is None else self.stride_right,
            -1 if self.stride_out is None else self.stride_out,
            ACTIVATIONS.index(self.activation),
            self.accumulate,
            -1 if self.out_dtype is None else self.out_dtype.code,
            self.alignment,
            -1 if self.accumulation is None else self.accumulation.code,
            -1 if self.workspace_mib is None else self.workspace_mib,
            -1 if self.left_dtype is None else self.left_dtype.code,
        )


def _are_mixed(left: DType, right: DType) -> bool:
    return left != right and left.itemsize == right.itemsize == 1
