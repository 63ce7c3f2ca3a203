"""From shapes and strides to the problem: what is used in place, and what has no signature."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.gemm import parse_signature, signature_of
from tensorplay.ops.layout import batch_problem, matrix_problem

Array = NDArray[Any]
SIZES = st.integers(1, 6)


def params(left: Array, right: Array, out: Array | None = None, **flags: bool) -> str:
    problem = matrix_problem(left, right, out, **flags)
    assert problem is not None
    return signature_of(problem).params


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def test_dense_rows_are_the_plain_case() -> None:
    assert params(ones(2, 3), ones(3, 4)) == "taN_m2_n4_k3_bias0_devcpu"


def test_the_transposed_view_of_a_weight_is_used_in_place() -> None:
    assert params(ones(2, 3), ones(4, 3).T) == "taT_m2_n4_k3_bias0_devcpu"
    assert params(ones(3, 2).T, ones(3, 4)) == "taN_m2_n4_k3_bias0_devcpu_tbT"


def test_padded_rows_say_their_leading_dimension() -> None:
    assert params(ones(2, 9)[:, :3], ones(3, 4)) == "taN_m2_n4_k3_bias0_devcpu_ldb9"
    assert params(ones(2, 3), ones(3, 9)[:, :4]) == "taN_m2_n4_k3_bias0_devcpu_lda9"
    assert params(ones(2, 3), ones(4, 9)[:, :3].T) == "taT_m2_n4_k3_bias0_devcpu_lda9"
    assert params(ones(2, 3), ones(3, 4), ones(2, 9)[:, :4]) == "taN_m2_n4_k3_bias0_devcpu_ldc9"


def test_bias_and_accumulation_are_part_of_the_signature() -> None:
    assert params(ones(2, 3), ones(3, 4), bias=True).endswith("bias1_devcpu")
    assert params(ones(2, 3), ones(3, 4), accumulate=True).endswith("_beta1")


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1)])
def test_what_is_both_rows_and_columns_counts_as_plain(shape: tuple[int, int]) -> None:
    m, k = shape
    assert params(ones(m, k), ones(k, 4)) == f"taN_m{m}_n4_k{k}_bias0_devcpu"
    assert params(ones(k, m).T, ones(k, 4)) == f"taN_m{m}_n4_k{k}_bias0_devcpu"


@pytest.mark.parametrize(
    ("left", "right", "out"),
    [
        (ones(0, 3), ones(3, 4), None),
        (ones(2, 0), ones(0, 4), None),
        (ones(2, 3), ones(3, 4).astype(np.float64), None),
        (ones(2, 3), ones(3, 4), np.ones((2, 4))),
        (ones(2, 3).astype(">f4"), ones(3, 4).astype(">f4"), None),
        (ones(2, 3).astype(object), ones(3, 4).astype(object), None),
        (ones(2, 3).astype(np.int64), ones(3, 4).astype(np.int64), None),
        (ones(4, 3)[::-1][:2], ones(3, 4), None),
        (ones(2, 6)[:, ::2], ones(3, 4), None),
        (np.broadcast_to(ones(1, 3), (2, 3)), ones(3, 4), None),
        (ones(2, 3), ones(3, 4), ones(4, 2).T),
    ],
)
def test_what_no_library_takes_in_place_has_no_signature(left: Array, right: Array, out: Array | None) -> None:
    assert matrix_problem(left, right, out) is None


@given(m=SIZES, n=SIZES, k=SIZES, pad=st.integers(0, 3), left_t=st.booleans(), right_t=st.booleans())
def test_a_problem_describes_exactly_the_memory_that_the_view_reads(
    m: int, n: int, k: int, pad: int, left_t: bool, right_t: bool
) -> None:
    left = _view(m, k, pad, transposed=left_t)
    right = _view(k, n, pad, transposed=right_t)
    problem = matrix_problem(left, right, None)
    assert problem is not None
    assert parse_signature(*signature_of(problem)) == problem
    np.testing.assert_array_equal(_read(left, problem.ld_left, transposed=problem.transpose_left), left)
    np.testing.assert_array_equal(_read(right, problem.ld_right, transposed=problem.transpose_right), right)


def _view(rows: int, columns: int, pad: int, *, transposed: bool) -> Array:
    shape = (columns, rows + pad) if transposed else (rows, columns + pad)
    stored = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    return stored[:, :rows].T if transposed else stored[:, :columns]


def _read(view: Array, ld: int | None, *, transposed: bool) -> Array:
    """Read a matrix as a BLAS would: from its first element, by rows of `ld` elements."""
    rows, columns = view.shape[::-1] if transposed else view.shape
    step = (columns if ld is None else ld) * view.itemsize
    stored = np.lib.stride_tricks.as_strided(view, (rows, columns), (step, view.itemsize))
    return stored.T if transposed else stored


class TestBatches:
    def test_dense_stacks_say_their_count_only(self) -> None:
        problem = batch_problem(ones(5, 2, 3), ones(5, 3, 4), None)
        assert problem is not None
        assert signature_of(problem).params == "taN_m2_n4_k3_bias0_devcpu_batch5"

    def test_a_stack_that_interleaves_its_matrices_says_its_step(self) -> None:
        stack = np.arange(24, dtype=np.float32).reshape(2, 2, 6)[..., :3].swapaxes(0, 1)
        problem = batch_problem(stack, ones(2, 3, 4), None)
        assert problem is not None
        assert (problem.ld_left, problem.stride_left) == (12, 6)

    def test_a_shared_operand_has_stride_zero(self) -> None:
        problem = batch_problem(ones(5, 2, 3), np.broadcast_to(ones(3, 4), (5, 3, 4)), None)
        assert problem is not None
        assert signature_of(problem).params == "taN_m2_n4_k3_bias0_devcpu_batch5_stridea0"

    @pytest.mark.parametrize("shape", [(1, 2, 3), (0, 2, 3), (5, 0, 3), (4, 2, 3)])
    def test_single_empty_or_unequal_stacks_have_no_signature(self, shape: tuple[int, int, int]) -> None:
        assert batch_problem(ones(*shape), ones(5, 3, 4), None) is None
