"""The rules of the comparison itself, on made-up results."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.gemm import DType, GemmProblem, dtype_of_name
from tensorplay.measure.numerics import (
    LAST_FACTOR,
    Agreement,
    Tolerance,
    agree,
    default_tolerance,
    problem_tolerance,
)

Array = NDArray[Any]
EXACT = np.linspace(1.0, 2.0, 12).reshape(3, 4)
LOOSE = Tolerance(atol=0.0, rtol=0.01)


def dtype(name: str) -> DType:
    found = dtype_of_name(name)
    assert found is not None
    return found


def compared(candidate: Array, default: Array, exact: Array | None = None, name: str = "float64") -> Agreement:
    def reference() -> Array:
        if exact is None:
            raise AssertionError("the reference is not needed here")
        return exact

    return agree(candidate, default, reference, dtype=dtype(name), k=10, tolerance=LOOSE)


def with_element(value: complex, place: tuple[int, int] = (1, 2)) -> Array:
    result: Array = EXACT.astype(np.result_type(value))
    result[place] = value
    return result


def test_equal_results_need_no_reference() -> None:
    assert compared(EXACT, EXACT.copy()) == Agreement(
        ok=True, max_abs_error=0.0, max_rel_error=0.0, reason="equal to the default's"
    )


def test_results_within_the_tolerance_need_no_reference_either() -> None:
    agreement = compared(EXACT * 1.005, EXACT)
    assert agreement.ok
    assert agreement.reason == "within the tolerance of the default's"
    assert agreement.max_abs_error == pytest.approx(0.01)
    assert agreement.max_rel_error == pytest.approx(0.005)


def test_the_more_precise_of_two_results_passes_by_the_reference() -> None:
    agreement = compared(EXACT, EXACT * 1.05, EXACT)
    assert (agreement.ok, agreement.max_abs_error) == (True, 0.0)
    assert agreement.reason == "within the tolerance of the reference"


@pytest.mark.parametrize(("error", "ok"), [(0.079, True), (0.081, False)])
def test_a_result_may_err_twice_as_much_as_an_imprecise_default(error: float, ok: bool) -> None:
    agreement = compared(EXACT * (1 - error), EXACT * 1.04, EXACT)
    assert agreement.ok is ok
    assert agreement.max_rel_error == pytest.approx(error)


def test_a_default_that_is_wrong_vouches_for_nobody_but_does_not_forbid_the_truth() -> None:
    wrong = with_element(1e9)
    assert not compared(with_element(-7.0), wrong, EXACT).ok
    assert compared(EXACT, wrong, EXACT).ok


def test_a_refusal_says_where_and_by_how_much() -> None:
    agreement = compared(with_element(9.0), EXACT, EXACT)
    assert not agreement.ok
    assert agreement.reason == (
        "1 of 12 elements are off the reference, worst at (1, 2) by 482 times the tolerance (the default: 0)"
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_in_both_is_no_error(value: float) -> None:
    assert compared(with_element(value), with_element(value)).ok


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_in_the_candidate_only_is_one(value: float) -> None:
    agreement = compared(with_element(value), EXACT, EXACT)
    assert not agreement.ok
    assert agreement.max_abs_error == math.inf


def test_an_infinity_of_the_other_sign_is_an_error() -> None:
    assert not compared(with_element(math.inf), with_element(-math.inf), with_element(-math.inf)).ok


def test_a_number_where_the_default_has_none_passes_only_if_the_reference_has_it() -> None:
    assert compared(EXACT, with_element(math.nan), EXACT).ok
    assert not compared(with_element(9.0), with_element(math.nan), EXACT).ok
    assert not compared(EXACT, with_element(math.nan), with_element(math.nan)).ok
    assert not compared(EXACT, with_element(math.inf), with_element(math.inf)).ok


def test_nan_that_both_share_does_not_hide_an_error_elsewhere() -> None:
    default = with_element(math.nan)
    candidate = default.copy()
    candidate[0, 0] = 5.0
    assert not compared(candidate, default, default).ok


def test_shared_nan_is_no_error_even_when_the_reference_has_a_number() -> None:
    default = with_element(math.nan)
    candidate = default * 1.02
    assert compared(candidate, default, EXACT * 1.015).ok


def test_a_nan_in_one_part_of_a_complex_element_shows() -> None:
    good = with_element(1 + 1j)
    assert not compared(with_element(complex(1, math.nan)), good, good, "complex128").ok


def test_real_and_complex_results_do_not_agree() -> None:
    assert not compared(EXACT, EXACT.astype(complex), name="complex128").ok


def test_other_shapes_do_not_agree() -> None:
    agreement = compared(EXACT.reshape(4, 3), EXACT)
    assert not agreement.ok
    assert agreement.reason == "its shape is (4, 3), the default's (3, 4)"


def test_a_reference_of_another_shape_is_the_callers_error() -> None:
    with pytest.raises(ValueError, match="reference has shape"):
        compared(EXACT, EXACT * 2, EXACT.T)


def test_empty_results_agree() -> None:
    assert compared(np.empty((0, 3)), np.empty((0, 3))).ok


def test_results_in_any_memory_layout_are_compared_element_by_element() -> None:
    padded = np.zeros((3, 9))
    padded[:, ::2][:, :4] = EXACT
    assert compared(padded[:, ::2][:, :4], np.asfortranarray(EXACT)).ok
    assert not compared(padded[:, 1::2], np.asfortranarray(EXACT), EXACT).ok


def test_a_result_larger_than_one_block_is_compared_to_its_end() -> None:
    default = np.ones((1025, 1030), np.float32)
    candidate = default.copy()
    candidate[1024, 1029] = 2.0
    agreement = compared(candidate, default, default, "float32")
    assert not agreement.ok
    assert "worst at (1024, 1029)" in agreement.reason


def test_float64_is_compared_with_more_than_its_own_precision() -> None:
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("long double is no wider here")
    # One part in 2**60: lost in a float64 difference.
    exact = EXACT.astype(np.longdouble) * (1 + np.longdouble(2.0) ** -60)
    agreement = agree(
        EXACT, EXACT + 1e-9, lambda: exact, dtype=dtype("float64"), k=10, tolerance=Tolerance(0.0, 2.0**-62)
    )
    assert agreement.max_rel_error == pytest.approx(2.0**-60, rel=0.01)


def test_a_tolerance_of_zero_asks_for_equality() -> None:
    zero = Tolerance(0.0, 0.0)
    exact = EXACT.copy()
    assert agree(EXACT, EXACT, lambda: exact, dtype=dtype("float64"), k=1, tolerance=zero).ok
    assert not agree(np.nextafter(EXACT, 9.0), EXACT, lambda: exact, dtype=dtype("float64"), k=1, tolerance=zero).ok


@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf])
def test_a_tolerance_that_is_no_finite_number_from_0_up_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match="atol is"):
        Tolerance(value, 0.0)
    with pytest.raises(ValueError, match="rtol is"):
        Tolerance(0.0, value)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "tf32", "float8_e4m3fn", "complex64"])
def test_the_tolerance_grows_with_k_and_scale_but_stays_below_one_summand(name: str) -> None:
    plain, longer = default_tolerance(dtype(name), 100), default_tolerance(dtype(name), 1000)
    scaled = default_tolerance(dtype(name), 100, scale=3.0)
    assert plain.atol < longer.atol < 1.0
    assert scaled == Tolerance(plain.atol * 3.0, plain.rtol)
    assert plain.rtol == longer.rtol


def test_the_result_and_the_accumulator_may_be_of_other_types() -> None:
    half, single = dtype("float16"), dtype("float32")
    plain = default_tolerance(half, 100)
    assert default_tolerance(half, 100, out=single).rtol < plain.rtol
    assert default_tolerance(half, 100, accumulation=half).atol > 1000 * plain.atol


@pytest.mark.parametrize(("k", "scale"), [(0, 1.0), (-1, 1.0), (1, 0.0), (1, math.nan), (1, math.inf)])
def test_a_tolerance_of_no_product_is_an_error(k: int, scale: float) -> None:
    with pytest.raises(ValueError, match="allowed: k from 1 up"):
        default_tolerance(dtype("float32"), k, scale=scale)


def problem_of(name: str, **fields: Any) -> GemmProblem:
    return GemmProblem(dtype=dtype(name), m=16, n=16, k=fields.pop("k", 64), device="0", **fields)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("k", [1, 2, 777, 1 << 18])
def test_no_tolerance_hides_a_sum_whose_end_was_dropped(name: str, k: int) -> None:
    for bias, activation in ((False, "none"), (True, "none"), (True, "gelu")):
        allowed = problem_tolerance(problem_of(name, k=k, bias=bias, activation=activation))
        largest = LAST_FACTOR**2 + 2.0 * k**0.5
        assert allowed.atol + allowed.rtol * largest < LAST_FACTOR**2


def test_a_sum_that_is_rounded_before_a_bias_is_added_agrees_and_one_without_the_bias_does_not() -> None:
    rng = np.random.default_rng(0)
    products = rng.uniform(-60, 60, (64, 64))
    bias = -products + rng.uniform(-1, 1, (64, 64))
    exact = products + bias
    rounded = (products.astype(np.float16).astype(np.float32) + bias.astype(np.float32)).astype(np.float16)
    once = exact.astype(np.float16)
    problem = problem_of("float16", k=4096, bias=True)
    plain = default_tolerance(problem.dtype, problem.k)
    for allowed, ok in ((problem_tolerance(problem), True), (plain, False)):
        found = agree(rounded, once, lambda: exact, dtype=problem.dtype, k=problem.k, tolerance=allowed)
        assert found.ok is ok
    without = agree(
        products.astype(np.float16),
        once,
        lambda: exact,
        dtype=problem.dtype,
        k=problem.k,
        tolerance=problem_tolerance(problem),
    )
    assert not without.ok


def test_a_result_in_a_wider_type_is_judged_by_that_type() -> None:
    wide = problem_tolerance(problem_of("bfloat16", out_dtype=dtype("float32")))
    assert wide.rtol < problem_tolerance(problem_of("bfloat16")).rtol / 1000
