"""What kernels do about the result that they are given, and about numbers that are none: as numpy.matmul does."""

from collections.abc import Iterator

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.kernel import Array
from tensorplay.backends.host.operands import random_operands
from tensorplay.gemm import GemmProblem, dtype_of_word

BACKEND = HostBackend()
FLOAT64, FLOAT16 = dtype_of_word("Float64"), dtype_of_word("Float16")
SQUARE = GemmProblem(dtype=FLOAT64, m=40, n=40, k=40)
PROBLEMS = [
    SQUARE,
    GemmProblem(dtype=FLOAT64, m=40, n=40, k=40, transpose_left=True, transpose_right=True),
    GemmProblem(dtype=FLOAT64, m=1, n=40, k=40, transpose_right=True),
    GemmProblem(dtype=FLOAT64, m=40, n=1, k=40),
    GemmProblem(dtype=FLOAT64, m=40, n=40, k=1),
    GemmProblem(dtype=FLOAT16, m=40, n=40, k=40),
    GemmProblem(dtype=FLOAT64, m=4, n=600, k=40, transpose_right=True),
    GemmProblem(dtype=FLOAT64, m=20, n=30, k=40, batch=3),
    GemmProblem(dtype=FLOAT64, m=20, n=30, k=40, batch=3, stride_right=0),
    GemmProblem(dtype=FLOAT64, m=20, n=30, k=40, ld_out=32, ld_left=50, ld_right=31),
]
IDS = [f"{p.dtype.name}-{p.batch}x{p.m}x{p.n}x{p.k}-{p.ld_out}" for p in PROBLEMS]


def every_plan(problem: GemmProblem) -> Iterator[Plan]:
    yield from BACKEND.candidates(problem, CandidateQuery(breadth="search"))


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_a_read_only_result_is_refused_and_stays_unwritten(problem: GemmProblem) -> None:
    for plan in every_plan(problem):
        left, right, out = random_operands(problem, 0)
        out.flags.writeable = False
        with pytest.raises(ValueError):
            plan.run(left, right, out)
        assert np.isnan(out).all(), plan.kernel


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_read_only_operands_are_read(problem: GemmProblem) -> None:
    for plan in every_plan(problem):
        left, right, out = random_operands(problem, 0)
        expected = np.matmul(left, right)
        left.flags.writeable = right.flags.writeable = False
        np.testing.assert_allclose(plan.run(left, right, out), expected, rtol=1e-2, atol=1e-2, err_msg=plan.kernel)


@pytest.mark.parametrize("dtype", [FLOAT64, FLOAT16])
@pytest.mark.parametrize("shared", ["left", "right", "both"])
def test_a_result_that_is_an_operand_gets_the_right_product(dtype, shared) -> None:  # type: ignore[no-untyped-def]
    problem = GemmProblem(dtype=dtype, m=40, n=40, k=40)
    for plan in every_plan(problem):
        left, right, _ = random_operands(problem, 0)
        if shared == "both":
            right = left
        expected = np.matmul(left, right)
        out = right if shared == "right" else left
        assert plan.run(left, right, out) is out
        np.testing.assert_allclose(out, expected, rtol=1e-2, atol=1e-2, err_msg=plan.kernel)


@pytest.mark.parametrize("offset", [1, 7, 40, 41, 799, 1599])
def test_a_result_that_begins_inside_an_operand_gets_the_right_product(offset: int) -> None:
    numbers = np.random.default_rng(0).random(2 * 1600)
    for plan in every_plan(SQUARE):
        for is_left in (True, False):
            memory, other = numbers.copy(), numbers[:1600].reshape(40, 40)
            operand, out = memory[:1600].reshape(40, 40), memory[offset : offset + 1600].reshape(40, 40)
            pair = (operand, other) if is_left else (other, operand)
            expected = np.matmul(*pair)
            plan.run(*pair, out)
            np.testing.assert_allclose(out, expected, err_msg=plan.kernel)


def test_a_result_that_is_a_transposed_operand_gets_the_right_product() -> None:
    problem = GemmProblem(dtype=FLOAT64, m=40, n=40, k=40, transpose_right=True)
    for plan in every_plan(problem):
        left, right, _ = random_operands(problem, 0)
        expected = np.matmul(left, right)
        plan.run(left, right, right.T)
        np.testing.assert_allclose(right.T, expected, err_msg=plan.kernel)


def poisoned(operand: Array, value: float) -> Array:
    operand[..., 1 % operand.shape[-2], 2 % operand.shape[-1]] = value
    return operand


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_numbers_that_are_none_go_where_numpy_lets_them_go(problem: GemmProblem, value: float) -> None:
    left, right, out = random_operands(problem, 3)
    for pair in ((poisoned(left.copy("K"), value), right), (left, poisoned(right.copy("K"), value))):
        # Zeros in the other operand: 0 * NaN is NaN, and a kernel that skips zeros loses it.
        operands = [np.where(np.isfinite(each), np.round(each), each).astype(each.dtype) for each in pair]
        laid_out = random_operands(problem, 3)
        laid_out.left[...], laid_out.right[...] = operands
        with np.errstate(invalid="ignore"):
            expected = np.matmul(*operands)
            for plan in every_plan(problem):
                found = plan.run(laid_out.left, laid_out.right, out)
                np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=plan.kernel)
                np.testing.assert_array_equal(np.isinf(found), np.isinf(expected), err_msg=plan.kernel)


@pytest.mark.parametrize("sizes", [(1, 300), (300, 1), (1, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize("name", ["Float32", "Float64", "Complex64", "Complex128", "Float16", "BFloat16"])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_factor_of_zero_is_multiplied_as_numpy_does(name: str, sizes: tuple[int, int], batch: int) -> None:
    problem = GemmProblem(dtype=dtype_of_word(name), m=sizes[0], n=sizes[1], k=1, batch=batch)
    for is_left in (True, False):
        left, right, out = random_operands(problem, 0)
        zero, other = (left, right) if is_left else (right, left)
        zero[...] = 0
        other[...] = 1
        other[..., 0, 0] = np.nan
        other[..., -1, -1] = np.inf
        with np.errstate(invalid="ignore"):
            expected = np.matmul(left, right)
            for plan in every_plan(problem):
                found = plan.run(left, right, out)
                np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=plan.kernel)


def test_operands_that_turn_out_to_be_misaligned_are_multiplied_all_the_same() -> None:
    def misaligned(array: Array) -> Array:
        memory = np.zeros(array.nbytes + 1, np.uint8)
        moved = memory[1:].view(array.dtype).reshape(array.shape)
        moved[...] = array
        assert not moved.flags.aligned
        return moved

    left, right, out = random_operands(SQUARE, 0)
    expected = np.matmul(left, right)
    for plan in every_plan(SQUARE):
        for operands in ((misaligned(left), right), (left, misaligned(right)), (misaligned(left), misaligned(right))):
            np.testing.assert_allclose(plan.run(*operands, out), expected, err_msg=plan.kernel)
        if "dot" not in plan.kernel:  # dot refuses it, as it always does
            np.testing.assert_allclose(plan.run(left, right, misaligned(out)), expected, err_msg=plan.kernel)
