"""What a problem looks like with the weight's rows first, and which problems are skinny at all."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.skinny.shape import MOST_COLUMNS, skinny_shape
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_name


def posed(name: str = "bfloat16", m: int = 4, n: int = 64, k: int = 32, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


@given(
    few=st.integers(1, MOST_COLUMNS),
    many=st.integers(1, 40),
    k=st.integers(1, 12),
    is_swapped=st.booleans(),
    left=st.booleans(),
    right=st.booleans(),
    gap=st.integers(0, 3),
)
def test_the_shape_s_steps_find_the_product_s_elements(
    few: int, many: int, k: int, is_swapped: bool, left: bool, right: bool, gap: int
) -> None:
    m, n = (many, few) if is_swapped else (few, many)
    plain: GemmProblem = posed(m=m, n=n, k=k, transpose_left=left, transpose_right=right)
    lds: dict[str, Any] = {
        "ld_left": plain.left_columns + gap,
        "ld_right": plain.right_columns + gap,
        "ld_out": plain.n + gap,
    }
    problem = replace(plain, **lds) if gap else plain
    shape = skinny_shape(problem)
    rng = np.random.default_rng(k)
    a, b = rng.integers(-9, 9, (m, k)), rng.integers(-9, 9, (k, n))
    stored_a, stored_b = np.zeros(99 * 99, np.int64), np.zeros(99 * 99, np.int64)
    for matrix, stored, ld, turned in (
        (a, stored_a, lds["ld_left"], left),
        (b, stored_b, lds["ld_right"], right),
    ):
        laid = matrix.T if turned else matrix
        row, column = np.ogrid[: laid.shape[0], : laid.shape[1]]
        stored[row * ld + column] = laid
    weight, x = (stored_b, stored_a) if shape.weight_is_right else (stored_a, stored_b)
    row, step = np.ogrid[: shape.rows, : shape.depth]
    w = weight[row * shape.weight_ld + step if shape.is_along else step * shape.weight_ld + row]
    column, step = np.ogrid[: shape.columns, : shape.depth]
    columns = x[column * shape.x_column_step + step * shape.x_depth_step]
    out = np.zeros(99 * 99, np.int64)
    row, column = np.ogrid[: shape.rows, : shape.columns]
    out[row * shape.out_row_step + column * shape.out_column_step] = w @ columns.T
    row, column = np.ogrid[:m, :n]
    np.testing.assert_array_equal(out[row * (n + gap) + column], a @ b)


@given(ld=st.integers(65, 80), alignment=st.sampled_from([2, 4, 8, 16]))
def test_each_stored_row_is_as_aligned_as_the_shape_says_and_no_less(ld: int, alignment: int) -> None:
    shape = skinny_shape(posed(n=64, k=64, transpose_right=True, ld_right=ld, alignment=alignment))
    assert all(row * ld * 2 % shape.weight_alignment == 0 for row in range(64))
    assert shape.weight_alignment == alignment or ld * 2 % (2 * shape.weight_alignment) != 0


def test_x_that_is_not_contiguous_along_the_depth_has_no_alignment() -> None:
    assert skinny_shape(posed(transpose_left=True)).x_alignment == 0
    assert skinny_shape(posed()).x_alignment == 16


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (posed(m=17, n=17), "17 x 17"),
        (posed(batch=2), "2 of 4 x 64"),
        (posed("float64"), "float64"),
        (posed(device="cpu"), "NVIDIA"),
        (posed(alignment=1), "aligned"),
        (posed(out_dtype=dtype_of_name("float16")), "float16"),
        (posed(n=2**30 + 1), "count to"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_problem_that_is_not_skinny_is_refused_with_the_reason(problem: GemmProblem, reason: str) -> None:
    with pytest.raises(KernelUnavailableError, match=reason):
        skinny_shape(problem)
