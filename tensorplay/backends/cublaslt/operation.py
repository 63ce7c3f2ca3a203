"""A problem as cuBLASLt's descriptors.

The library is column-major: a row-major matrix is to it the transposed one. So `out = left @ right`, all row-major,
is computed as `out^T = right^T left^T`: its A is our right operand, its B our left one, its D, of n rows and m
columns, our result. A bias along its rows has one value for each of our n columns.
"""

from tensorplay.backends.cublaslt.attributes import OperationAttribute
from tensorplay.backends.cublaslt.call_descriptor import CallDescriptor
from tensorplay.backends.cublaslt.descriptors import MatrixLayout
from tensorplay.backends.cublaslt.number_types import is_float8, number_types
from tensorplay.backends.host.layout import Layout, left_layout, out_layout, right_layout
from tensorplay.errors import KernelUnavailableError, OperandError
from tensorplay.gemm import GemmProblem

__all__ = ["Operation", "check_alignment"]

_NO, _TRANSPOSED = 0, 1
# The library's GELU is the tanh approximation, whatever the array library's default is.
_EPILOGUES = {
    ("none", False): 1,
    ("none", True): 4,
    ("relu", False): 2,
    ("relu", True): 6,
    ("gelu", False): 32,
    ("gelu", True): 36,
}
_LARGEST_BATCH = 2**31 - 1
# Only its lowest bits are looked at, to know how a bias will be aligned, and whether it is there at all.
_SOME_ADDRESS = 1 << 20


def check_alignment(problem: GemmProblem) -> None:
    """Raise `OperandError` for operands that begin in the middle of an element: whoever has such must copy them.

    Complex elements are whole ones: a GPU loads both parts at once, and faults where they are not aligned together.
    """
    item = problem.dtype.itemsize
    if problem.alignment < item:
        raise OperandError(
            f"operands of {problem.dtype.name} must be aligned to {item} bytes on a GPU, these are to "
            f"{problem.alignment}; copy them first"
        )


class Operation:
    """The descriptors of one problem, shared by all its plans.

    Everything is set once, but the addresses of a bias and of FP8's scales, which the library reads before its call
    returns. So a call that has such takes a descriptor out of `idle`, or a `further` one, and puts it back when it is
    done: two threads, or a signal handler that multiplies, never share one, and none waits for another.

    Attributes
    ----------
    idle : list of CallDescriptor
        Those that no call has.
    scale_count : int
        How many scales a call has: 3 for a result of FP8, 2 for another of FP8 operands, else 0.

    Raises
    ------
    KernelUnavailableError
        When the library has no such product.
    OperandError
        When operands begin in the middle of an element.
    """

    __slots__ = (
        "__weakref__",
        "a",
        "b",
        "c",
        "d",
        "descriptor",
        "idle",
        "problem",
        "scale_count",
        "types",
    )

    def __init__(self, problem: GemmProblem) -> None:
        check_alignment(problem)
        if problem.dtype.is_complex and (problem.bias or problem.activation != "none"):
            raise KernelUnavailableError("cuBLASLt adds no bias and applies no activation to complex products")
        if problem.batch > _LARGEST_BATCH:
            raise KernelUnavailableError(
                f"cuBLASLt multiplies at most {_LARGEST_BATCH} pairs, these are {problem.batch}"
            )
        self.problem = problem
        self.types = number_types(problem)
        self.scale_count = 0
        if is_float8(problem.dtype):
            self.scale_count = 3 if is_float8(problem.result_type) else 2
        self.descriptor = self.further()
        out = out_layout(problem)
        self.a = _layout(self.types.operand, right_layout(problem))
        self.b = _layout(self.types.left, left_layout(problem))
        self.c = _layout(self.types.c, out)
        self.d = self.c if self.types.c == self.types.out else _layout(self.types.out, out)
        self.idle: list[CallDescriptor] = []
        if problem.bias and problem.alignment < 16:
            self.descriptor.set_bias(_SOME_ADDRESS + problem.alignment)
        # The library is to look for kernels that take scales, before any are known.
        self.descriptor.set_scales((_SOME_ADDRESS,) * self.scale_count)

    def further(self) -> CallDescriptor:
        """Return one more descriptor of the product, without any address."""
        problem = self.problem
        descriptor = CallDescriptor(self.types.compute, self.types.scale, self.scale_count)
        descriptor[OperationAttribute.TRANSA] = _TRANSPOSED if problem.transpose_right else _NO
        descriptor[OperationAttribute.TRANSB] = _TRANSPOSED if problem.transpose_left else _NO
        descriptor[OperationAttribute.EPILOGUE] = _EPILOGUES[problem.activation, problem.bias]
        if problem.bias and self.types.bias != self.types.out:
            descriptor[OperationAttribute.BIAS_DATA_TYPE] = self.types.bias
        return descriptor


def _layout(data_type: int, stored: Layout) -> MatrixLayout:
    """Return row-major storage as the library sees it: a stored row is a column."""
    return MatrixLayout(data_type, stored.columns, stored.rows, stored.ld, batch=stored.batch, stride=stored.stride)
