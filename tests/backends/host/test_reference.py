from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.backends.host.dtypes import numpy_dtype
from tensorplay.backends.host.kernel import Array
from tensorplay.backends.host.reference import reference_product
from tensorplay.gemm import dtype_of_word


def uniform(shape: tuple[int, ...], seed: int) -> Array:
    numbers: Array = np.random.default_rng(seed).random(shape) * 2 - 1
    return numbers


def exactly(left: Array, right: Array) -> list[list[Fraction]]:
    columns = list(zip(*right.tolist(), strict=True))
    return [
        [sum((Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)), Fraction(0)) for column in columns]
        for row in left.tolist()
    ]


def is_rounded_once(found: Array, exact: list[list[Fraction]]) -> bool:
    return bool((found == np.array([[float(number) for number in row] for row in exact])).all())


@settings(max_examples=30, deadline=None)
@given(m=st.integers(1, 4), n=st.integers(1, 4), k=st.integers(1, 200), seed=st.integers(0, 2**32))
def test_float64_products_are_those_of_exact_arithmetic_rounded_once(m: int, n: int, k: int, seed: int) -> None:
    left, right = uniform((m, k), seed), uniform((k, n), seed + 1)
    assert is_rounded_once(reference_product(left, right), exactly(left, right))


def test_sums_that_cancel_keep_their_digits() -> None:
    left = np.array([[1.0, 1.0, -1.0, 2.0**-60]])
    right = np.array([[1.0], [2.0**-52], [1.0], [1.0]])
    assert is_rounded_once(reference_product(left, right), exactly(left, right))
    left, right = uniform((1, 400), 7), uniform((400, 1), 8)
    left, right = np.concatenate((left, -left), axis=1), np.concatenate((right, right), axis=0)
    left[0, 3] = np.nextafter(left[0, 3], 2)
    exact = float(exactly(left, right)[0][0])
    assert 0 < exact < 2.0**-53
    assert reference_product(left, right)[0, 0] == pytest.approx(exact, rel=1e-10, abs=0)


@pytest.mark.parametrize("scale", [1.0, 2.0**40, 2.0**-40])
def test_long_sums_are_right_where_plain_float64_is_not(scale: float) -> None:
    left, right = uniform((2, 5000), 1) * scale, uniform((5000, 2), 2)
    assert is_rounded_once(reference_product(left, right), exactly(left, right))
    assert not is_rounded_once(left @ right, exactly(left, right))


def test_complex_products_are_exact_in_both_parts() -> None:
    left = uniform((3, 50), 1) + 1j * uniform((3, 50), 2)
    right = uniform((50, 2), 3) + 1j * uniform((50, 2), 4)
    found = reference_product(left, right)
    assert found.dtype == np.complex128
    plus, minus = (np.concatenate(pair, axis=1) for pair in ((left.real, left.imag), (left.real, -left.imag)))
    assert is_rounded_once(found.real, exactly(minus, np.concatenate((right.real, right.imag))))
    assert is_rounded_once(found.imag, exactly(plus, np.concatenate((right.imag, right.real))))


@pytest.mark.parametrize(
    ("word", "expected"),
    [("Float32", np.float64), ("Float16", np.float64), ("BFloat16", np.float64), ("Complex64", np.complex128)],
)
def test_narrow_types_are_multiplied_in_a_type_of_twice_their_digits(word: str, expected: Any) -> None:
    dtype = numpy_dtype(dtype_of_word(word))
    left, right = uniform((4, 30), 1).astype(dtype), uniform((30, 5), 2).astype(dtype)
    found = reference_product(left, right)
    assert found.dtype == expected
    np.testing.assert_allclose(found, left.astype(expected) @ right.astype(expected), rtol=1e-14)


def test_stacks_are_multiplied_one_by_one() -> None:
    left, right = uniform((3, 4, 5), 1), np.broadcast_to(uniform((5, 6), 2), (3, 5, 6))
    found = reference_product(left, right)
    for index in range(3):
        np.testing.assert_array_equal(found[index], reference_product(left[index], right[index]))


def test_zeros_are_zero() -> None:
    assert not reference_product(np.zeros((3, 4)), uniform((4, 5), 1)).any()
