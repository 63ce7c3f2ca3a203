"""The hot paths of `linear`, `addmm` and `bmm` on tensors: bias, activation, factors and outputs of each call."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
Put = Callable[..., Any]
# Here it is a fake device's arrays, whose type no checker knows.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context")


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def close(found: Any, expected: Array) -> None:
    assert type(found).__module__ == "torch"
    np.testing.assert_allclose(found.host, expected, rtol=1e-4, atol=1e-5)


def relu(values: Array) -> Array:
    positive: Array = np.maximum(values, 0)
    return positive


def directs(context: TuningContext) -> int:
    return len({id(each) for each in context.plans.values() if isinstance(each, Direct)})


@pytest.mark.parametrize("leading", [(3,), (2, 3), (), (0, 3)])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("with_out", [False, True])
def test_linear_folds_bias_and_output_into_its_hot_path(
    torch: Any, put: Put, context: TuningContext, leading: tuple[int, ...], with_bias: bool, with_out: bool
) -> None:
    x, weight, bias = put(random(*leading, 8)), put(random(4, 8)), put(random(4))
    expected = x.host @ weight.host.T + (bias.host if with_bias else 0)
    for _ in range(3):
        out = put(np.full((*leading, 4), np.nan, np.float32)) if with_out else None
        found = tensorplay.linear(x, weight, bias if with_bias else None, out=out)
        assert out is None or found is out
        assert found.shape == (*leading, 4)
        close(found, expected)
    assert directs(context) == (0 if 0 in leading else 1)


def test_each_activation_is_another_entry_of_the_hot_path(
    torch: Any, put: Put, context: TuningContext, backend: Any
) -> None:
    x, weight, bias = put(random(3, 8)), put(random(4, 8)), put(random(4))
    plain = x.host @ weight.host.T + bias.host
    for _ in range(3):
        close(tensorplay.linear(x, weight, bias), plain)
        close(tensorplay.linear(x, weight, bias, activation="relu"), relu(plain))
        close(tensorplay.addmm(bias, x, put(weight.host.T.copy()), activation="relu"), relu(plain))
    assert directs(context) == 3
    assert [problem.activation for problem, _, _ in backend.launches[-3:]] == ["none", "relu", "relu"]


def test_addmm_with_a_bias_takes_the_factor_of_each_call(torch: Any, put: Put, context: TuningContext) -> None:
    bias, a, b = put(random(6)), put(random(3, 5)), put(random(5, 6))
    for alpha in (1, 2.5, -1, 0.0, 3):
        for out in (None, put(np.full((3, 6), np.nan, np.float32))):
            found = tensorplay.addmm(bias, a, b, alpha=alpha, out=out)
            assert out is None or found is out
            close(found, bias.host + alpha * (a.host @ b.host))
    assert directs(context) == 2


def test_addmm_with_anything_but_a_bias_is_right_and_not_remembered(
    torch: Any, put: Put, context: TuningContext
) -> None:
    a, b = put(random(3, 5)), put(random(5, 6))
    product = a.host @ b.host
    for _ in range(3):
        for c in (random(1), random(3, 6), random(1, 6)):
            close(tensorplay.addmm(put(c), a, b), c + product)
        close(tensorplay.addmm(put(random(6)), a, b, beta=2), 2 * random(6) + product)
        close(tensorplay.addmm(put(np.full(6, np.nan, np.float32)), a, b, beta=0), product)
    assert directs(context) == 0


def test_addmm_refuses_factors_and_addends_as_the_long_way_does(torch: Any, put: Put) -> None:
    bias, a, b = put(random(6)), put(random(3, 5)), put(random(5, 6))
    for _ in range(2):
        tensorplay.addmm(bias, a, b)
        with pytest.raises(OperandError, match="alpha is a FakeTensor"):
            tensorplay.addmm(bias, a, b, alpha=put(random(1)))
        with pytest.raises(OperandError, match="on the host"):
            tensorplay.addmm(bias.host, a, b)
        with pytest.raises(ShapeError, match=r"bias_or_c is \(5,\)"):
            tensorplay.addmm(put(random(5)), a, b)
        with pytest.raises(OperandError, match="activation is 'tanh'; allowed: none, relu, gelu"):
            tensorplay.addmm(bias, a, b, activation="tanh")


def test_bmm_has_a_hot_path_with_and_without_an_output(
    torch: Any, put: Put, context: TuningContext, backend: Any
) -> None:
    a, b = put(random(2, 3, 5)), put(random(2, 5, 4))
    for _ in range(3):
        close(tensorplay.bmm(a, b), a.host @ b.host)
        out = put(np.full((2, 3, 4), np.nan, np.float32))
        assert tensorplay.bmm(a, b, out=out) is out
        close(out, a.host @ b.host)
    assert directs(context) == 2
    assert {problem.batch for problem, _, _ in backend.launches} == {2}


def test_an_output_that_overlaps_any_operand_gets_the_right_result(torch: Any, put: Put) -> None:
    for _ in range(3):
        x, weight, bias = put(random(4, 4)), put(random(4, 4, seed=1)), put(random(4))
        expected = x.host @ weight.host.T + bias.host
        close(tensorplay.linear(x, weight, bias, out=put(np.zeros((4, 4), np.float32))), expected)
        close(tensorplay.linear(x, weight, bias, out=weight), expected)
        weight = put(random(4, 4, seed=1))
        close(tensorplay.linear(x, weight, bias, out=x), expected)
        memory = put(random(16)).host
        x = put(random(4, 4))
        expected = memory[8:12] + x.host @ weight.host
        out = torch.Tensor(memory.reshape(4, 4))
        close(tensorplay.addmm(torch.Tensor(memory[8:12]), x, weight, out=out), expected)
        stack = put(random(2, 4, 4))
        expected = stack.host @ stack.host
        close(tensorplay.bmm(stack, put(stack.host), out=stack), expected)


def test_a_winner_that_fails_on_the_hot_path_falls_back(
    torch: Any, put: Put, context: TuningContext, backend: Any
) -> None:
    x, weight, bias = put(random(3, 8)), put(random(4, 8)), put(random(4))
    for _ in range(2):
        tensorplay.linear(x, weight, bias)
    backend.broken = {backend.launches[-1][1]}
    close(tensorplay.linear(x, weight, bias), x.host @ weight.host.T + bias.host)
    assert context.stats()["fallback"] == 1


def test_a_gradient_that_would_be_lost_is_refused_on_the_hot_path_too(torch: Any, put: Put) -> None:
    x, weight = put(random(3, 8)), torch.nn.Parameter(put(random(4, 8)).host)
    bias = torch.nn.Parameter(put(random(4)).host)
    with torch.no_grad():
        for _ in range(2):
            tensorplay.linear(x, weight, bias, activation="relu")
    with pytest.raises(OperandError, match=r"torch\.no_grad"):
        tensorplay.linear(x, weight, bias, activation="relu")
