"""The rules of the comparison itself, on made-up results."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.gemm import DType, dtype_of_name
from tensorplay.measure.numerics import Agreement, Tolerance, agree

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
