"""Activations on the fake device: the product's own kernel applies them, to whatever was added before."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.backends.cublaslt.reference import activated
from tensorplay.errors import OperandError
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
Put = Callable[..., Any]
# Here it is a fake device's arrays, whose type no checker knows.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context")


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def close(found: Any, expected: Array) -> None:
    np.testing.assert_allclose(found.host, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_hands_it_to_the_kernel(
    cupy: Put, backend: Any, context: TuningContext, activation: str, with_bias: bool
) -> None:
    x, weight, bias = random(2, 3, 5), random(4, 5), random(4)
    expected = activated(x @ weight.T + (bias if with_bias else 0), activation)
    for _ in range(2):
        for out in (None, cupy(np.empty((2, 3, 4), np.float32)), cupy(np.empty((2, 3, 9), np.float32)[..., :4])):
            found = tensorplay.linear(
                cupy(x), cupy(weight), cupy(bias) if with_bias else None, activation=activation, out=out
            )
            close(found, expected)
    assert {problem.activation for problem, _, _ in backend.launches} == {activation}
    assert all(("_act" in params) == (activation != "none") for _, params, *_ in context.get_results())


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("c_shape", [(4,), (3, 4), (3, 1), ()])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (-1, 2), (1, 0)])
def test_addmm_activates_what_was_added_to(
    cupy: Put, activation: str, c_shape: tuple[int, ...], alpha: float, beta: float
) -> None:
    a, b, c = random(3, 5), random(5, 4), random(*c_shape)
    expected = activated(beta * c + alpha * (a @ b), activation)
    for out in (None, cupy(np.empty((3, 4), np.float32)), cupy(np.empty((4, 3), np.float32).T)):
        found = tensorplay.addmm(cupy(c), cupy(a), cupy(b), alpha=alpha, beta=beta, activation=activation, out=out)
        close(found, expected)


def test_a_sum_of_no_products_is_activated_too(cupy: Put) -> None:
    bias = random(4)
    found = tensorplay.linear(cupy(random(3, 0)), cupy(random(4, 0)), cupy(bias), activation="relu")
    close(found, np.broadcast_to(np.maximum(bias, 0), (3, 4)))
    assert tensorplay.linear(cupy(random(0, 5)), cupy(random(4, 5)), activation="gelu").shape == (0, 4)


def test_each_activation_is_resolved_by_itself(cupy: Put, backend: Any) -> None:
    x, weight = cupy(random(3, 5)), cupy(random(4, 5))
    for _ in range(2):
        for activation in ("relu", "none", "gelu"):
            tensorplay.linear(x, weight, activation=activation)
    assert [problem.activation for problem, _, _ in backend.launches] == ["relu", "none", "gelu"] * 2


def test_complex_numbers_and_unknown_activations_are_refused(cupy: Put, backend: Any) -> None:
    x = cupy(random(3, 3, dtype=np.complex64))
    with pytest.raises(OperandError, match="linear: activation relu of a result of complex64"):
        tensorplay.linear(x, x, activation="relu")
    with pytest.raises(OperandError, match="addmm: activation gelu of a result of complex64"):
        tensorplay.addmm(x, x, x, activation="gelu")
    real = cupy(random(3, 3))
    calls: tuple[Callable[[], Any], ...] = (
        lambda: tensorplay.linear(real, real, activation="silu"),
        lambda: tensorplay.addmm(real, real, real, activation="silu"),
    )
    for call in calls:
        with pytest.raises(OperandError, match="activation is 'silu'; allowed: none, relu, gelu"):
            call()
    assert backend.launches == []
