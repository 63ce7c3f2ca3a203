"""What honest kernels may be off by, and that it is less than what a mistake costs."""

import math
from typing import Any

import numpy as np
import pytest

from tensorplay.gemm import DType, GemmProblem, dtype_of_name
from tensorplay.measure.check_operands import ALPHA, BETA, LONG, check_numbers
from tensorplay.measure.numerics import agree
from tensorplay.measure.tolerance import Tolerance, default_tolerance, problem_tolerance

NAMES = ["float32", "tf32", "float64", "float16", "bfloat16", "float8_e4m3fn", "complex64", "complex128"]


def dtype(name: str) -> DType:
    found = dtype_of_name(name)
    assert found is not None
    return found


def problem_of(name: str, **fields: Any) -> GemmProblem:
    return GemmProblem(dtype=dtype(name), m=16, n=16, k=fields.pop("k", 64), device="0", **fields)


@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf])
def test_a_tolerance_that_is_no_finite_number_from_0_up_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match="atol is"):
        Tolerance(value, 0.0)
    with pytest.raises(ValueError, match="rtol is"):
        Tolerance(0.0, value)


@pytest.mark.parametrize("name", NAMES)
def test_the_tolerance_grows_with_k_and_scale_but_stays_below_one_summand(name: str) -> None:
    plain, longer = default_tolerance(dtype(name), 100), default_tolerance(dtype(name), 1000)
    scaled = default_tolerance(dtype(name), 100, scale=3.0)
    # The last summand is 64. Registers of FP8 keep 14 bits, and a sum near 64 loses what is below a hundredth.
    assert plain.atol < longer.atol < (1.5 if name.startswith("float8") else 1.0)
    assert scaled == Tolerance(plain.atol * 3.0, plain.rtol)
    assert plain.rtol == longer.rtol


@pytest.mark.parametrize(("k", "scale"), [(0, 1.0), (-1, 1.0), (1, 0.0), (1, math.nan), (1, math.inf)])
def test_a_tolerance_of_no_product_is_an_error(k: int, scale: float) -> None:
    with pytest.raises(ValueError, match="allowed: k from 1 up"):
        default_tolerance(dtype("float32"), k, scale=scale)


def test_the_result_and_the_accumulator_may_be_of_other_types() -> None:
    half, single = dtype("float16"), dtype("float32")
    plain = default_tolerance(half, 100)
    assert default_tolerance(half, 100, out=single).rtol < plain.rtol
    assert default_tolerance(half, 100, accumulation=half).atol > 1000 * plain.atol


def test_a_result_in_a_wider_type_is_judged_by_that_type() -> None:
    wide = problem_tolerance(problem_of("bfloat16", out_dtype=dtype("float32")))
    assert wide.rtol < problem_tolerance(problem_of("bfloat16")).rtol / 1000


def test_only_narrow_types_may_compute_gelu_roughly() -> None:
    for name, most in (("float64", 1e-6), ("float32", 1e-3)):
        plain, gelu = (problem_tolerance(problem_of(name, activation=each)).atol for each in ("relu", "gelu"))
        assert plain < gelu < most
    for name in ("float16", "bfloat16", "float8_e4m3fn"):
        plain, gelu = (problem_tolerance(problem_of(name, activation=each)).atol for each in ("relu", "gelu"))
        assert plain + 2.0**-11 * 20 < gelu < plain + 0.1


def size_of(value: float, name: str) -> bool:
    """Return whether a number is exact in a type of so many bits behind the leading one."""
    mantissa, _ = math.frexp(value)
    return (abs(mantissa) / dtype(name).unit_roundoff).is_integer()


@pytest.mark.parametrize("name", [*NAMES, "float8_e5m2"])
def test_heavy_ends_are_exact_in_every_type_and_cancel_but_for_a_bit(name: str) -> None:
    numbers = check_numbers(LONG)
    assert numbers.first is not None
    for sizes in (numbers.first, numbers.last):
        assert sizes.low == sizes.high
        assert size_of(sizes.low, name)
    first, last = numbers.last.high * numbers.first.high, numbers.last.high**2
    assert first < 0 < last
    assert first + last == 8


@pytest.mark.parametrize("name", ["float32", "tf32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("k", [LONG, 777, 16384, 1 << 18])
def test_no_tolerance_hides_a_heavy_end_or_an_addend(name: str, k: int) -> None:
    numbers = check_numbers(k)
    assert numbers.first is not None
    heavy = abs(numbers.last.high * numbers.first.high)
    # The result of three elements in four is smaller than this.
    size = 8.0 + 1.2 * math.sqrt(k / 9)
    for activation in ("none", "relu", "gelu"):
        for bias, accumulate in ((False, False), (True, False), (True, True)):
            allowed = problem_tolerance(problem_of(name, k=k, bias=bias, accumulate=accumulate, activation=activation))
            # A default may be off the other way by as much.
            hidden = 2 * (allowed.atol + allowed.rtol * (size + 2 * numbers.addend.high))
            assert hidden < abs(ALPHA) * heavy / 2
            assert hidden < numbers.addend.low * (1 if k < 1 << 18 else 2)
            assert hidden < abs(1 - BETA) * numbers.addend.low


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_sum_that_is_rounded_before_a_bias_is_added_agrees_and_one_without_the_bias_does_not(name: str) -> None:
    rng = np.random.default_rng(0)
    problem = problem_of(name, k=4096, bias=True)
    unit = problem.dtype.unit_roundoff

    def rounded(values: Any) -> Any:
        step = 2.0 ** np.floor(np.log2(np.abs(values))) * 2 * unit
        return np.round(values / step) * step

    products = rng.uniform(-130, 130, (64, 64))
    bias = -np.sign(products) * rng.uniform(16, 32, (64, 64))
    exact = products + bias
    twice, once = rounded(rounded(products) + bias), rounded(exact)
    plain = default_tolerance(problem.dtype, problem.k)
    for candidate, allowed, ok in (
        (twice, problem_tolerance(problem), True),
        (twice, plain, False),
        (rounded(products), problem_tolerance(problem), False),
        (rounded(products + 2 * bias), problem_tolerance(problem), False),
    ):
        found = agree(candidate, once, lambda: exact, dtype=problem.dtype, k=problem.k, tolerance=allowed)
        assert found.ok is ok
