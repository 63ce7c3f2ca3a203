"""`addmm` and `linear` add what they say, in place where they may, as NumPy would where no plan fits."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay
from tensorplay.errors import ShapeError
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
pytestmark = pytest.mark.usefixtures("context")


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def close(found: Array, expected: Array) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


class TestAddmm:
    @pytest.mark.parametrize("shape", [(6,), (1, 6), (4, 1), (4, 6), (), (1,)])
    @pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2.5, 1), (1, -0.5), (0.5, 2), (0, 1), (1, 0)])
    def test_adds_anything_that_broadcasts(self, shape: tuple[int, ...], alpha: float, beta: float) -> None:
        c, a, b = random(*shape, seed=3), random(4, 5), random(5, 6, seed=1)
        expected = (np.float32(beta) * c + np.float32(alpha) * (a @ b)).astype(np.float32)
        for _ in range(2):
            close(tensorplay.addmm(c, a, b, alpha=alpha, beta=beta), expected)
            out = np.full((4, 6), np.nan, np.float32)
            assert tensorplay.addmm(c, a, b, alpha=alpha, beta=beta, out=out) is out
            close(out, expected)

    def test_accumulates_in_place(self) -> None:
        for _ in range(2):
            c, a, b = random(4, 6, seed=3), random(4, 5), random(5, 6, seed=1)
            expected = c * np.float32(0.5) + a @ b
            assert tensorplay.addmm(c, a, b, beta=0.5, out=c) is c
            close(c, expected)

    def test_does_not_read_what_beta_zero_leaves_out(self) -> None:
        c = np.full((4, 6), np.nan, np.float32)
        close(tensorplay.addmm(c, random(4, 5), random(5, 6), beta=0), random(4, 5) @ random(5, 6))

    def test_leaves_its_operands_as_they_are(self) -> None:
        c, a, b = random(4, 6, seed=3), random(4, 5), random(5, 6, seed=1)
        kept = [operand.copy() for operand in (c, a, b)]
        for _ in range(2):
            tensorplay.addmm(c, a, b, alpha=2, beta=3)
        for operand, before in zip((c, a, b), kept, strict=True):
            np.testing.assert_array_equal(operand, before)

    def test_promotes_as_numpy_where_types_differ(self) -> None:
        c, a, b = random(4, 6, dtype=np.float64), random(4, 5), random(5, 6)
        assert tensorplay.addmm(c, a, b).dtype == np.float64
        assert tensorplay.addmm(np.ones(6, int), np.ones((4, 5), int), np.ones((5, 6), int)).dtype == np.int64
        close(tensorplay.addmm(c, a, b, alpha=2), c + 2 * (a @ b))

    @pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 4, 6), (6, 4)])
    def test_names_what_does_not_broadcast(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ShapeError, match=r"\(4, 6\)") as caught:
            tensorplay.addmm(random(*shape), random(4, 5), random(5, 6))
        assert str(shape) in str(caught.value)

    def test_names_both_matrices_when_they_do_not_fit(self) -> None:
        with pytest.raises(ShapeError, match=r"\(4, 5\) and \(6, 7\)"):
            tensorplay.addmm(random(7), random(4, 5), random(6, 7))

    @pytest.mark.parametrize("shape", [(0, 5, 6), (4, 0, 6), (4, 5, 0)])
    def test_of_empty_matrices_is_the_addend(self, shape: tuple[int, int, int]) -> None:
        m, k, n = shape
        close(tensorplay.addmm(random(n), random(m, k), random(k, n)), random(n) + np.zeros((m, n), np.float32))


class TestLinear:
    @pytest.mark.parametrize("rows", [(5,), (3, 5), (2, 3, 5), (1, 1, 2, 5), (0, 5)])
    @pytest.mark.parametrize("has_bias", [False, True])
    def test_equals_x_times_weight_transposed_plus_bias(self, rows: tuple[int, ...], has_bias: bool) -> None:
        x, weight = random(*rows), random(4, 5, seed=1)
        bias = random(4, seed=2) if has_bias else None
        expected = x @ weight.T + (0 if bias is None else bias)
        for _ in range(2):
            found = tensorplay.linear(x, weight, bias)
            assert found.shape == expected.shape
            close(found, expected.astype(np.float32))
            out = np.full(expected.shape, np.nan, np.float32)
            assert tensorplay.linear(x, weight, bias, out=out) is out
            close(out, expected.astype(np.float32))

    def test_writes_into_padded_and_strided_outputs(self) -> None:
        x, weight, bias = random(2, 3, 5), random(4, 5), random(4)
        expected = x @ weight.T + bias
        padded = np.full((2, 3, 7), 9, np.float32)
        tensorplay.linear(x, weight, bias, out=padded[..., :4])
        close(padded[..., :4], expected)
        assert (padded[..., 4:] == 9).all()
        turned = np.empty((4, 3), np.float32).T
        close(tensorplay.linear(x[0], weight, bias, out=turned), expected[0])

    def test_survives_an_output_that_overlaps_the_bias(self) -> None:
        memory = random(3 * 4)
        bias = memory[4:8]
        x, weight = random(3, 5), random(4, 5)
        expected = x @ weight.T + bias
        close(tensorplay.linear(x, weight, bias, out=memory.reshape(3, 4)), expected)

    def test_uses_the_weight_in_place(self, tuning: TuningContext) -> None:
        tensorplay.linear(random(3, 5), random(4, 5), random(4))
        ((op, params, _, _),) = tuning.get_results()
        assert (op, params) == ("GemmTunableOp_Float32", "taT_m3_n4_k5_bias1_devcpu")

    def test_of_half_precision_with_bias_is_right(self) -> None:
        x, weight, bias = (random(*shape, dtype=np.float16) for shape in ((8, 32), (16, 32), (16,)))
        expected = x.astype(np.float64) @ weight.astype(np.float64).T + bias
        for _ in range(2):
            found = tensorplay.linear(x, weight, bias)
            assert found.dtype == np.float16
            np.testing.assert_allclose(found.astype(float), expected, rtol=2e-2, atol=2e-2)

    @pytest.mark.parametrize(
        ("x", "weight", "bias"),
        [((3, 5), (4, 6), None), ((), (4, 5), None), ((3, 5), (5,), None), ((3, 5), (4, 5), (5,))],
    )
    def test_names_the_shapes_that_do_not_fit(self, x: Any, weight: Any, bias: Any) -> None:
        with pytest.raises(ShapeError) as caught:
            tensorplay.linear(random(*x), random(*weight), None if bias is None else random(*bias))
        assert str(weight) in str(caught.value)


def test_linear_without_inputs_is_the_bias() -> None:
    close(tensorplay.linear(random(8, 0), random(6, 0)), np.zeros((8, 6), np.float32))
    close(tensorplay.linear(random(2, 4, 0), random(6, 0), random(6)), np.zeros((2, 4, 6), np.float32) + random(6))


@pytest.mark.parametrize("factor", [Fraction(1, 3), np.float64(2), np.float32(2), 2, 2.5, True, np.array(2.0)])
def test_a_factor_of_any_type_promotes_as_in_numpy(factor: Any) -> None:
    c, a, b = random(4, 6, seed=3), random(4, 5), random(5, 6)
    expected = c + factor * (a @ b)
    found = tensorplay.addmm(c, a, b, alpha=factor)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [int, float, np.float64, np.float16, np.int64, np.longdouble, complex, np.array])
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_the_type_of_a_sum_follows_the_type_of_a_factor_and_not_its_value(name: str, kind: Any) -> None:
    c, a, b = random(4, 6, seed=3), random(4, 5), random(5, 6)
    expected = (kind(3) * (a @ b) + c).dtype
    assert {tensorplay.addmm(c, a, b, **{name: kind(value)}).dtype for value in (0, 1, 2)} == {expected}


@pytest.mark.parametrize("dtype", [bool, np.int8, int])
@pytest.mark.parametrize("value", [0, 1, 2])
def test_whole_numbers_are_scaled_as_numpy_scales_them(dtype: Any, value: int) -> None:
    c, a, b = np.ones(6, dtype), np.ones((4, 5), dtype), np.ones((5, 6), dtype)
    for factor in (value, float(value)):
        for found, expected in (
            (tensorplay.addmm(c, a, b, alpha=factor), factor * (a @ b) + 1 * c),
            (tensorplay.addmm(c, a, b, beta=factor), 1 * (a @ b) + factor * c),
        ):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_a_beta_of_zero_gives_the_type_of_the_sum_and_reads_nothing() -> None:
    c = np.full((4, 6), np.nan)
    found = tensorplay.addmm(c, random(4, 5), random(5, 6), beta=0)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()


def test_a_factor_of_one_leaves_infinite_complex_numbers_as_they_are() -> None:
    a = np.full((1, 1), complex(np.inf, 0), np.complex64)
    with np.errstate(invalid="ignore"):
        found = tensorplay.addmm(np.zeros(1, np.complex64), a, np.ones((1, 1), np.complex64), alpha=np.complex128(1))
        expected = (a @ np.ones((1, 1), np.complex64)).astype(np.complex128)
    assert found.dtype == np.complex128
    np.testing.assert_array_equal(found, expected)
