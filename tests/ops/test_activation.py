"""Activations of the host: after the product and all that is added, in place, and only of real numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import tensorplay
from tensorplay.errors import OperandError
from tensorplay.ops.activation import activate

Array = NDArray[Any]
Calls = tuple[Callable[[], Any], ...]
BFLOAT16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-2, 2, shape).astype(dtype)


def exact(values: Array, activation: str) -> Array:
    """Return the activation by its definition, in float64."""
    wide = values.astype(np.float64)
    if activation == "relu":
        return np.where(wide > 0, wide, 0.0)
    if activation == "gelu":
        wide = 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    return wide


class TestActivate:
    @pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float32, np.float64, np.longdouble])
    @pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
    def test_is_rounded_once_to_the_type_of_the_result(self, dtype: Any, activation: str) -> None:
        values = random(500, dtype=dtype)
        expected = exact(values, activation)
        found = activate(values, activation)
        assert found is values
        assert found.dtype == dtype
        roundoff = {2: 2.0**-11 if dtype == np.float16 else 2.0**-8, 4: 4e-7, 8: 1e-15}.get(found.dtype.itemsize, 1e-15)
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=roundoff, atol=roundoff / 4)

    def test_writes_into_views_and_nowhere_else(self) -> None:
        memory = random(4, 9)
        kept = memory.copy()
        activate(memory[:, 2:6].T, "relu")
        np.testing.assert_array_equal(memory[:, 2:6], np.maximum(kept[:, 2:6], 0))
        np.testing.assert_array_equal(memory[:, 6:], kept[:, 6:])
        half = memory.astype(np.float16)
        activate(half[1:2], "gelu")
        np.testing.assert_array_equal(half[2:], memory.astype(np.float16)[2:])

    @given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
    def test_gelu_of_any_number_lies_between_nothing_and_the_number(self, value: float) -> None:
        (found,) = activate(np.array([value], np.float32), "gelu")
        assert min(value, 0.0) - 1e-6 <= found <= max(value, 0.0)
        assert value < 10 or found == np.float32(value)
        assert value > -10 or found == 0.0

    @pytest.mark.parametrize("activation", ["relu", "gelu"])
    def test_what_is_no_number_stays_so_and_the_infinite_stays_infinite(self, activation: str) -> None:
        found = activate(np.array([np.nan, np.inf], np.float32), activation)
        assert np.isnan(found[0])
        assert found[1] == np.inf

    def test_of_nothing_is_nothing(self) -> None:
        assert activate(np.empty((0, 3), np.float16), "gelu").shape == (0, 3)


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
class TestProducts:
    @pytest.mark.parametrize("rows", [(3, 5), (5,), (2, 3, 5), (0, 5)])
    @pytest.mark.parametrize("has_bias", [False, True])
    def test_linear_activates_the_sum(self, activation: str, rows: tuple[int, ...], has_bias: bool) -> None:
        x, weight = random(*rows), random(4, 5, seed=1)
        bias = random(4, seed=2) if has_bias else None
        expected = exact(x @ weight.T + (0 if bias is None else bias), activation)
        for _ in range(2):
            found = tensorplay.linear(x, weight, bias, activation=activation)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
            out = np.full(expected.shape, np.nan, np.float32)
            assert tensorplay.linear(x, weight, bias, activation=activation, out=out) is out
            np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("c_shape", [(6,), (4, 6), (1, 6), ()])
    @pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (-2, 0.5), (1, 0), (0.5, 0)])
    def test_addmm_activates_the_sum(
        self, activation: str, c_shape: tuple[int, ...], alpha: float, beta: float
    ) -> None:
        c, a, b = random(*c_shape, seed=3), random(4, 5), random(5, 6, seed=1)
        expected = exact(beta * c + alpha * (a @ b), activation)
        for out in (None, np.full((4, 6), np.nan, np.float32), np.empty((6, 4), np.float32).T):
            for _ in range(2):
                found = tensorplay.addmm(c, a, b, alpha=alpha, beta=beta, activation=activation, out=out)
                assert out is None or found is out
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)

    def test_the_addend_itself_may_be_the_output(self, activation: str) -> None:
        for _ in range(2):
            c, a, b = random(4, 6, seed=3), random(4, 5), random(5, 6)
            expected = exact(c + a @ b, activation)
            assert tensorplay.addmm(c, a, b, activation=activation, out=c) is c
            np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
    def test_half_precision_is_activated_in_single(self, activation: str, dtype: Any) -> None:
        x, weight, bias = (random(*shape, dtype=dtype) for shape in ((8, 16), (4, 16), (4,)))
        sums = x.astype(np.float64) @ weight.astype(np.float64).T + bias.astype(np.float64)
        for _ in range(2):
            out = np.empty((8, 4), dtype)
            tensorplay.linear(x, weight, bias, activation=activation, out=out)
            np.testing.assert_allclose(out.astype(np.float64), exact(sums, activation), rtol=3e-2, atol=3e-2)

    def test_types_that_differ_are_promoted_first(self, activation: str) -> None:
        c, a, b = random(4, 6, dtype=np.float64), random(4, 5), random(5, 6)
        found = tensorplay.addmm(c, a, b, activation=activation)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, exact(c + a @ b, activation), rtol=1e-6, atol=1e-6)
        narrow = np.empty((4, 6), np.float32)
        assert tensorplay.addmm(c, a, b, activation=activation, out=narrow) is narrow
        np.testing.assert_allclose(narrow, found, rtol=1e-5, atol=1e-6)

    def test_the_signature_is_that_of_the_sum(self, activation: str, tuning: Any) -> None:
        tensorplay.linear(random(3, 5), random(4, 5), random(4), activation=activation)
        assert [params for _, params, *_ in tuning.get_results()] == ["taT_m3_n4_k5_bias1_devcpu"]

    @pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.int64, bool, object])
    def test_numbers_that_have_none_are_refused_by_name(self, activation: str, dtype: Any) -> None:
        a, b = np.ones((3, 3), dtype), np.ones(3, dtype)
        calls: Calls = (
            lambda: tensorplay.linear(a, a, activation=activation),
            lambda: tensorplay.addmm(b, a, a, activation=activation),
            lambda: tensorplay.addmm(b, a, a, beta=0, activation=activation),
        )
        # A factor, which is 1 unless given, is a whole number: it makes whole numbers of bools, as in NumPy.
        scaled = (1 * np.ones(1, dtype)).dtype.name
        for call, name in zip(calls, (np.dtype(dtype).name, scaled, scaled), strict=True):
            with pytest.raises(OperandError, match=f"activation {activation} of a result of {name}"):
                call()


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("activation", ["", "tanh", "RELU", None, 1, ["relu"]])
def test_an_activation_that_nobody_has_is_refused_with_those_that_are(activation: Any) -> None:
    x = random(3, 3)
    calls: Calls = (
        lambda: tensorplay.linear(x, x, activation=activation),
        lambda: tensorplay.addmm(x, x, x, activation=activation),
        lambda: tensorplay.linear([[1.0]], [[1.0]], activation=activation),
    )
    for call in calls:
        with pytest.raises(OperandError, match="allowed: none, relu, gelu"):
            call()
