"""The hot path of scaled FP8 products of tensors: scales of each call, results of another type, what it leaves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay import cuda
from tensorplay.errors import OperandError
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext

ml_dtypes = pytest.importorskip("ml_dtypes")

Array = NDArray[Any]
Put = Callable[..., Any]
# Here it is a fake device's arrays, whose type no checker knows.
scaled_mm: Any = cuda.scaled_mm
pytestmark = pytest.mark.usefixtures("context")

E4M3, BF16 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.bfloat16)


def random(*shape: int, dtype: Any = E4M3, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


@pytest.fixture
def pair(torch: Any, put: Put) -> tuple[Any, Any, Array]:
    """Return two tensors that multiply, and their product."""
    a, weight = put(random(8, 32)), put(random(16, 32))
    return a, torch.Tensor(weight.host.T), a.host.astype(float) @ weight.host.T.astype(float)


def close(found: Any, expected: Array, dtype: Any = BF16) -> None:
    assert type(found).__module__ == "torch"
    assert found.host.dtype == dtype
    roundoff = 2.0**-4 if dtype == E4M3 else 2.0**-8
    np.testing.assert_allclose(found.host.astype(float), expected, rtol=roundoff, atol=roundoff)


def directs(context: TuningContext) -> int:
    return len({id(each) for each in context.plans.values() if isinstance(each, Direct)})


def number(put: Put, value: float) -> Any:
    return put(np.array([value], np.float32))


def test_the_second_call_runs_directly_with_the_scales_of_its_own(
    put: Put, pair: tuple[Any, Any, Array], context: TuningContext
) -> None:
    a, b, product = pair
    for value in (1.0, 2.0, -0.5):
        close(scaled_mm(a, b, scale_a=number(put, value), scale_b=number(put, 4.0)), 4 * value * product)
        close(scaled_mm(a, b, scale_a=value, scale_b=4), 4 * value * product)
        close(scaled_mm(a, b, scale_a=value, scale_b=number(put, 4.0)), 4 * value * product)
    assert directs(context) == 3
    assert context.stats()["measured"] == 1


def test_one_tensor_may_be_the_scale_of_both(put: Put, pair: tuple[Any, Any, Array], context: TuningContext) -> None:
    a, b, product = pair
    for value in (1.0, 2.0, 3.0):
        scale = number(put, value)
        close(scaled_mm(a, b, scale_a=scale, scale_b=scale), value**2 * product)
    assert directs(context) == 1


def test_results_of_each_type_are_made_anew_and_scaled(
    torch: Any, put: Put, pair: tuple[Any, Any, Array], context: TuningContext
) -> None:
    a, b, product = pair
    for _ in range(3):
        close(scaled_mm(a, b, out_dtype=torch.float32), product, np.float32)
        close(scaled_mm(a, b, out_dtype="bfloat16"), product)
        for scale in (8.0, number(put, 8.0)):
            close(scaled_mm(a, b, scale_out=scale, out_dtype=torch.float8_e4m3fn), 8 * product, E4M3)
        with pytest.raises(OperandError, match="scale_out is given"):
            scaled_mm(a, b, scale_out=1.0)
    assert directs(context) == 4


def test_a_bias_and_an_output_are_taken(put: Put, pair: tuple[Any, Any, Array], context: TuningContext) -> None:
    a, b, product = pair
    bias, out = put(random(16, dtype=BF16)), put(np.zeros((8, 16), np.float32))
    expected = 3 * product + bias.host.astype(float)
    for _ in range(3):
        out.host[...] = np.nan
        assert scaled_mm(a, b, scale_a=3.0, bias=bias, out=out) is out
        close(out, expected, np.float32)
        close(scaled_mm(a, b, scale_a=number(put, 3.0), bias=bias), expected)
    assert directs(context) == 2


def test_an_output_that_overlaps_a_scale_gets_the_right_result(
    torch: Any, put: Put, pair: tuple[Any, Any, Array]
) -> None:
    a, b, product = pair
    for _ in range(3):
        out = put(np.full((8, 16), 2.0, np.float32))
        apart = put(np.zeros((8, 16), np.float32))
        close(scaled_mm(a, b, scale_a=number(put, 2.0), out=apart), 2 * product, np.float32)
        close(scaled_mm(a, b, scale_a=torch.Tensor(out.host[7, 15:]), out=out), 2 * product, np.float32)


def test_errors_are_the_same_once_the_hot_path_is_known(
    torch: Any, put: Put, pair: tuple[Any, Any, Array], backend: Any
) -> None:
    a, b, product = pair
    for _ in range(3):
        close(scaled_mm(a, b, scale_a=number(put, 1.0)), product)
        with pytest.raises(OperandError, match="allowed: a number, or an array of one float32"):
            scaled_mm(a, b, scale_a=put(np.ones((8, 1), np.float32)))
        with pytest.raises(OperandError, match="is not the transposed view"):
            scaled_mm(put(random(32, 32)), put(random(32, 32)))
        with pytest.raises(OperandError, match="on the host"):
            scaled_mm(a, b, scale_a=torch.Tensor(np.ones(1, np.float32), -1))


def test_a_winner_that_fails_on_the_hot_path_falls_back(
    put: Put, pair: tuple[Any, Any, Array], context: TuningContext, backend: Any
) -> None:
    a, b, product = pair
    for _ in range(2):
        scaled_mm(a, b, scale_a=number(put, 2.0))
    backend.broken = {backend.launches[-1][1]}
    close(scaled_mm(a, b, scale_a=number(put, 2.0)), 2 * product)
    assert context.stats()["fallback"] == 1
