"""How a product of one row or one column is stored, against NumPy."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.gemv import gemv_plan, gemv_shape
from tensorplay.backends.host.layout import left_layout, right_layout
from tensorplay.errors import KernelUnavailableError, OperandError
from tensorplay.gemm import GemmProblem, dtype_of_name

HALF = dtype_of_name("float16")
assert HALF is not None
PLAIN = GemmProblem(dtype=HALF, m=1, n=8, k=8, device="0")


def as_the_kernel_reads(memory: NDArray[Any], shape: Any, x: NDArray[Any]) -> list[float]:
    """Sum as the kernels do, in memory by elements."""
    along = [[row * shape.ld + i for i in range(shape.length)] for row in range(shape.results)]
    across = [[i * shape.ld + column for i in range(shape.length)] for column in range(shape.results)]
    places = along if shape.along_rows else across
    return [sum(memory[at] * x[i * shape.x_step] for i, at in enumerate(each)) for each in places]


@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    is_row=st.booleans(),
    transpose_left=st.booleans(),
    transpose_right=st.booleans(),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_the_kernels_find_each_element_where_it_lies(
    sizes: tuple[int, int], is_row: bool, transpose_left: bool, transpose_right: bool, padding: tuple[int, int]
) -> None:
    m, n, k = (1, sizes[0], sizes[1]) if is_row else (sizes[0], 1, sizes[1])
    columns = (m if transpose_left else k, k if transpose_right else n)
    assert HALF is not None
    problem = GemmProblem(
        dtype=HALF,
        m=m,
        n=n,
        k=k,
        device="0",
        transpose_left=transpose_left,
        transpose_right=transpose_right,
        ld_left=columns[0] + padding[0] if padding[0] else None,
        ld_right=columns[1] + padding[1] if padding[1] else None,
    )
    rng = np.random.default_rng(0)
    left, right = (
        layout.filled(np.dtype(np.float64), np.nan) for layout in (left_layout(problem), right_layout(problem))
    )
    left[...], right[...] = rng.integers(-4, 5, left.shape), rng.integers(-4, 5, right.shape)

    def flat(array: NDArray[Any]) -> NDArray[Any]:
        base = array.T if array.strides[0] < array.strides[1] else array
        length = 1 + sum((size - 1) * stride for size, stride in zip(base.shape, base.strides, strict=True)) // 8
        return np.lib.stride_tricks.as_strided(base, (length,), (8,))

    stored = [flat(each) for each in (left, right)]
    shape = gemv_shape(problem)
    matrix, x = stored[::-1] if shape.matrix_is_right else stored
    assert as_the_kernel_reads(matrix, shape, x) == (left @ right).ravel().tolist()


@pytest.mark.parametrize(
    "further",
    [{"m": 2}, {"bias": True}, {"batch": 2}, {"activation": "relu"}, {"out_dtype": dtype_of_name("float32")}],
)
def test_other_products_are_refused_before_any_device_is_asked(further: dict[str, Any]) -> None:
    with pytest.raises(KernelUnavailableError):
        gemv_plan(replace(PLAIN, **further))


def test_operands_that_begin_within_an_element_are_the_callers_to_copy() -> None:
    with pytest.raises(OperandError, match="copy"):
        gemv_plan(replace(PLAIN, alignment=1))
