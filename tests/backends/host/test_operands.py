from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.backends.host.dtypes import numpy_dtype
from tensorplay.backends.host.layout import Layout, left_layout, new_output, out_layout, right_layout
from tensorplay.backends.host.operands import operand_bytes, random_operands
from tensorplay.gemm import GemmProblem, dtype_of_word
from tensorplay.measure.check_operands import LONG
from tensorplay.ops.layout import batch_problem, matrix_problem

FLOAT32 = dtype_of_word("Float32")
WORDS = ("Float32", "Float64", "Float16", "BFloat16", "Complex64", "Complex128")
sizes = st.integers(2, 9)
paddings = st.none() | st.integers(1, 5)


def problem_of(word: str, m: int, n: int, k: int, transposed: tuple[bool, bool], pads: list[int | None]) -> GemmProblem:
    left, right, out = pads
    return GemmProblem(
        dtype=dtype_of_word(word),
        m=m,
        n=n,
        k=k,
        transpose_left=transposed[0],
        transpose_right=transposed[1],
        ld_left=left and (m if transposed[0] else k) + left,
        ld_right=right and (k if transposed[1] else n) + right,
        ld_out=out and n + out,
    )


problems = st.builds(
    problem_of,
    st.sampled_from(WORDS),
    sizes,
    sizes,
    sizes,
    st.tuples(st.booleans(), st.booleans()),
    st.lists(paddings, min_size=3, max_size=3),
)


@given(problem=problems, seed=st.integers(0, 9))
def test_operands_pose_the_problem_that_they_were_made_for(problem: GemmProblem, seed: int) -> None:
    operands = random_operands(problem, seed)
    assert matrix_problem(*operands) == problem
    assert matrix_problem(*operands.copy_for(problem)) == problem


@pytest.mark.parametrize(("left", "right"), [(None, None), (0, None), (None, 0), (50, 60)])
def test_stacks_pose_the_problem_that_they_were_made_for(left: int | None, right: int | None) -> None:
    problem = GemmProblem(dtype=FLOAT32, m=3, n=4, k=5, batch=6, stride_left=left, stride_right=right)
    assert batch_problem(*random_operands(problem, 0)) == problem


def parts_of(operand: NDArray[Any], *, is_complex: bool) -> list[NDArray[Any]]:
    wide = operand.astype(np.complex128)
    return [wide.real, wide.imag] if is_complex else [wide.real]


@pytest.mark.parametrize("word", WORDS)
def test_numbers_are_uniform_but_for_the_ends_of_each_sum_and_the_same_for_a_seed(word: str) -> None:
    problem = GemmProblem(dtype=dtype_of_word(word), m=60, n=50, k=40, transpose_right=True)
    operands = random_operands(problem, 5)
    for operand, first in ((operands.left, 1.0), (operands.right.T, -7 / 8)):
        for whole in parts_of(operand, is_complex=problem.dtype.is_complex):
            assert set(whole[:, -1]) == {-8.0, 8.0}
            np.testing.assert_array_equal(whole[:, 0], first * whole[:, -1])
            part = whole[:, 1:-1]
            assert -1 <= part.min() < -0.9
            assert 0.9 < part.max() <= 1
            assert abs(part.mean()) < 0.1
    assert np.isnan(operands.out).all()
    again, copied = random_operands(problem, 5), operands.copy_for(problem)
    for one, other, copy in zip(operands[:2], again[:2], copied[:2], strict=True):
        assert one.tobytes() == other.tobytes() == copy.tobytes()
        assert not np.may_share_memory(one, copy)
    assert random_operands(problem, 6).left.tobytes() != operands.left.tobytes()


@pytest.mark.parametrize("k", [1, 2, LONG - 1])
@pytest.mark.parametrize("word", WORDS)
def test_short_sums_end_with_what_is_not_small(word: str, k: int) -> None:
    problem = GemmProblem(dtype=dtype_of_word(word), m=40, n=50, k=k)
    operands = random_operands(problem, 5)
    for operand in (operands.left, operands.right.T):
        for whole in parts_of(operand, is_complex=problem.dtype.is_complex):
            last = whole[:, -1]
            assert 0.5 <= np.abs(last).min() < 0.6
            assert 0.9 < np.abs(last).max() <= 1
            assert last.min() < 0 < last.max()
            assert len(np.unique(last)) > 20


@given(problem=problems)
def test_what_is_beside_an_operand_is_no_number(problem: GemmProblem) -> None:
    for layout, operand in zip(
        (left_layout(problem), right_layout(problem)), random_operands(problem, 0)[:2], strict=True
    ):
        item, strides = operand.itemsize, (layout.ld * operand.itemsize, operand.itemsize)
        first, guard = operand[:1, :1], 64 // item
        before = np.lib.stride_tricks.as_strided(first, (guard + 1,), (-item,))[1:]
        end = np.lib.stride_tricks.as_strided(first, (layout.rows, layout.columns), strides)[-1:, -1:]
        behind = np.lib.stride_tricks.as_strided(end, (guard + 1,), (item,))[1:]
        assert np.isnan(before).all()
        assert np.isnan(behind).all()


@pytest.mark.parametrize("alignment", [1, 2, 4, 8, 16])
def test_an_address_is_aligned_as_the_problem_says_and_no_better(alignment: int) -> None:
    problem = GemmProblem(dtype=FLOAT32, m=3, n=4, k=5, alignment=alignment)
    for operand in random_operands(problem, 0):
        address = operand.ctypes.data
        assert address % 64 == 0 if alignment == 16 else address % (2 * alignment) == alignment


def test_the_memory_of_a_set_is_known_before_it_is_made() -> None:
    problem = GemmProblem(dtype=FLOAT32, m=3, n=4, k=5, ld_left=7, transpose_right=True, batch=2, stride_right=0)
    # Left 6 rows of 7, the last without its padding; right once; the result twice.
    assert operand_bytes(problem) == 4 * ((5 * 7 + 5) + (4 * 5) + (2 * 3 * 4))
    giant = GemmProblem(dtype=FLOAT32, m=10**18 - 1, n=10**18 - 1, k=10**18 - 1)
    assert operand_bytes(giant) > 10**36


def test_a_result_is_new_memory_lying_as_the_problem_says() -> None:
    dense = GemmProblem(dtype=FLOAT32, m=3, n=4, k=5)
    padded = GemmProblem(dtype=FLOAT32, m=3, n=4, k=5, ld_out=6)
    side_by_side = GemmProblem(dtype=FLOAT32, m=3, n=4, k=5, batch=2, stride_out=4, ld_out=8)
    dtype = numpy_dtype(FLOAT32)
    assert new_output(dense, dtype).flags.c_contiguous
    assert new_output(padded, dtype).strides == (24, 4)
    assert new_output(side_by_side, dtype).strides == (16, 32, 4)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (Layout(1, 3, 4, 4, 12), True),
        (Layout(2, 3, 4, 4, 12), True),
        (Layout(2, 3, 4, 4, 11), False),
        (Layout(2, 3, 4, 4, 0), False),
        (Layout(2, 3, 4, 8, 4), True),
        (Layout(2, 3, 4, 7, 4), False),
        (Layout(2, 3, 4, 9, 3), False),
        (Layout(3, 1, 4, 4, 4), True),
    ],
)
def test_a_layout_knows_whether_elements_share_memory(layout: Layout, expected: bool) -> None:
    counts = np.zeros(layout.elements, int)
    for matrix in range(layout.batch):
        for row in range(layout.rows):
            start = matrix * layout.stride + row * layout.ld
            counts[start : start + layout.columns] += 1
    assert bool(counts.max() == 1) is expected
    assert layout.is_injective is expected


def test_operands_of_one_row_or_column_have_the_sizes_of_the_problem() -> None:
    for m, n, k in ((1, 5, 4), (5, 1, 4), (5, 4, 1), (1, 1, 1)):
        problem = GemmProblem(dtype=FLOAT32, m=m, n=n, k=k, transpose_left=True)
        left, right, out = random_operands(problem, 0)
        assert (left.shape, right.shape, out.shape) == ((m, k), (k, n), (m, n))
        assert left_layout(problem).elements == m * k
        assert right_layout(problem).elements == k * n
        assert out_layout(problem).elements == m * n
