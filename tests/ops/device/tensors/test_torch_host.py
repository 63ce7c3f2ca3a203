"""Tensors on the host are multiplied by torch's own products, by all functions alike."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError, ShapeError
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
Put = Callable[..., Any]
# Here it is a fake torch's arrays, whose type no checker knows.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context")

A, B = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(20, dtype=np.float32).reshape(4, 5) - 9
BIAS = np.arange(5, dtype=np.float32)

PRODUCTS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Array, ...]]] = {
    "mm": (tensorplay.mm, lambda a, b: a @ b, (A, B)),
    "bmm": (tensorplay.bmm, lambda a, b: a @ b, (A[None], B[None])),
    "matmul of matrices": (tensorplay.matmul, lambda a, b: a @ b, (A, B)),
    "matmul of a vector": (tensorplay.matmul, lambda a, b: a @ b, (A, B[:, 0])),
    "matmul of stacks": (tensorplay.matmul, lambda a, b: a @ b, (np.stack([A, A + 1]), B)),
    "linear": (tensorplay.linear, lambda x, weight: x @ weight.T, (A, B.T)),
    "linear of a vector": (tensorplay.linear, lambda x, weight: x @ weight.T, (A[0], B.T)),
    "linear with a bias": (tensorplay.linear, lambda x, weight, bias: x @ weight.T + bias, (A, B.T, BIAS)),
    "addmm of a bias": (tensorplay.addmm, lambda c, a, b: c + a @ b, (BIAS, A, B)),
    "addmm of a matrix": (tensorplay.addmm, lambda c, a, b: c + a @ b, (A @ B, A, B)),
    "addmm of a column": (tensorplay.addmm, lambda c, a, b: c + a @ b, (A[:, :1], A, B)),
}
EACH = pytest.mark.parametrize(("product", "expected", "arrays"), PRODUCTS.values(), ids=PRODUCTS.keys())


@pytest.fixture
def host(torch: Any) -> Put:
    """Return what makes a tensor on the host."""
    return lambda array: torch.Tensor(array.copy(), -1)


@EACH
def test_each_product_of_tensors_is_a_tensor_and_takes_one_as_output(
    torch: Any, host: Put, product: Any, expected: Any, arrays: tuple[Array, ...]
) -> None:
    tensors, result = [host(array) for array in arrays], expected(*arrays)
    for _ in range(2):
        found = product(*tensors)
        assert type(found) is torch.Tensor
        assert not found.is_cuda
        np.testing.assert_array_equal(found.host, result)
        out = host(np.full_like(result, np.nan))
        assert product(*tensors, out=out) is out
        np.testing.assert_array_equal(out.host, result)


def test_an_output_may_be_an_operand(host: Put) -> None:
    square = host(A[:, :3])
    expected = square.host @ square.host
    tensorplay.mm(square, square, out=square)
    np.testing.assert_array_equal(square.host, expected)
    c = host(A @ B)
    tensorplay.addmm(c, host(A), host(B), out=c)
    np.testing.assert_array_equal(c.host, 2 * (A @ B))


def test_factors_and_activations_are_those_of_every_array(host: Put) -> None:
    c, a, b = host(np.full((3, 5), np.nan, np.float32)), host(A), host(B)
    np.testing.assert_array_equal(tensorplay.addmm(c, a, b, alpha=2, beta=0).host, 2 * (A @ B))
    for half in (0.5, Fraction(1, 2), np.float32(0.5), np.float64(0.5)):
        found = tensorplay.addmm(host(BIAS), a, b, alpha=half, beta=half)
        np.testing.assert_array_equal(found.host, 0.5 * BIAS + 0.5 * (A @ B))
        assert found.dtype == "torch.float32"
    for found in (
        tensorplay.linear(a, host(B.T), activation="relu"),
        tensorplay.addmm(host(0 * BIAS), a, b, activation="relu"),
    ):
        np.testing.assert_array_equal(found.host, np.maximum(A @ B, 0))
    gelu = tensorplay.linear(a, host(B.T), activation="gelu")
    np.testing.assert_allclose(gelu.host, tensorplay.linear(A, B.T, activation="gelu"))


@EACH
def test_they_are_counted_as_what_is_never_tuned(
    host: Put, context: TuningContext, product: Any, expected: Any, arrays: tuple[Array, ...]
) -> None:
    del expected
    for _ in range(3):
        product(*[host(array) for array in arrays])
    counts = context.stats()
    assert counts["first_choice"] == 3
    assert counts["measured"] == counts["untuned"] == 0
    context.enable(False)
    product(*[host(array) for array in arrays])
    assert context.stats()["first_choice"] == 3


@EACH
def test_what_is_of_another_library_or_device_is_refused_wherever_it_stands(
    torch: Any, host: Put, put: Put, product: Any, expected: Any, arrays: tuple[Array, ...]
) -> None:
    outs: list[Callable[[], Any]] = [lambda: None, lambda: host(expected(*arrays))]
    others: list[Callable[[Array], Any]] = [lambda array: array, put, lambda array: array.tolist(), lambda _: "text"]
    for _ in range(2):
        for which in range(len(arrays)):
            for other in others:
                mixed = [other(array) if place == which else host(array) for place, array in enumerate(arrays)]
                for out in outs:
                    with pytest.raises(OperandError, match="allowed: "):
                        product(*mixed, out=out())
        for wrong in (expected(*arrays), put(expected(*arrays))):
            with pytest.raises(OperandError, match="allowed: "):
                product(*[host(array) for array in arrays], out=wrong)


@EACH
def test_a_gradient_that_would_be_lost_is_refused_as_on_a_gpu(
    torch: Any, host: Put, product: Any, expected: Any, arrays: tuple[Array, ...]
) -> None:
    for which in range(len(arrays)):
        tensors = [host(array) for array in arrays]
        tensors[which] = torch.Tensor(arrays[which], -1, requires_grad=True)
        with pytest.raises(OperandError, match=r"torch\.no_grad"):
            product(*tensors)
        with torch.no_grad():
            np.testing.assert_array_equal(product(*tensors).host, expected(*arrays))
    with pytest.raises(OperandError, match=r"torch\.no_grad"):
        product(*[host(array) for array in arrays], out=torch.Tensor(expected(*arrays), -1, requires_grad=True))


def test_lazy_conjugates_are_carried_out_and_not_written_to(torch: Any, host: Put) -> None:
    a = (A[:, :3] + 1j).astype(np.complex64)
    np.testing.assert_array_equal(tensorplay.mm(host(a).conj(), host(a)).host, a.conj() @ a)
    with pytest.raises(OperandError, match="lazily conjugated"):
        tensorplay.mm(host(a), host(a), out=host(a).conj())


def test_what_does_not_fit_is_told_in_our_words(torch: Any, host: Put) -> None:
    a, b, c = host(A), host(B), host(BIAS)
    calls: list[Callable[[], Any]] = [
        lambda: tensorplay.mm(a, a),
        lambda: tensorplay.mm(a, b, out=host(A)),
        lambda: tensorplay.bmm(a, b),
        lambda: tensorplay.matmul(a, a),
        lambda: tensorplay.matmul(host(np.stack([A, A])), host(np.stack([B] * 3))),
        lambda: tensorplay.matmul(host(np.array(1.0, np.float32)), b),
        lambda: tensorplay.linear(a, b),
        lambda: tensorplay.linear(a, host(B.T), host(A)),
        lambda: tensorplay.addmm(host(A), a, b),
    ]
    for call in calls:
        with pytest.raises(ShapeError, match=r"\(\d*,? ?\d*"):
            call()
    with pytest.raises(OperandError, match="activation is 'silu'"):
        tensorplay.linear(a, host(B.T), activation="silu")
    with pytest.raises(OperandError, match="out is float64, but the result is float32"):
        tensorplay.mm(a, b, out=host((A @ B).astype(np.float64)))
    with pytest.raises(
        OperandError, match=r"expected the same dtype, but got torch\.float32 and torch\.float64$"
    ) as raised:
        tensorplay.mm(a, host(B.astype(np.float64)))
    assert type(raised.value.__cause__) is RuntimeError
    for factor in (1j, host(BIAS), 10**400):
        with pytest.raises(OperandError, match="addmm: alpha is "):
            tensorplay.addmm(c, a, b, alpha=factor)
    # torch itself takes it for 0.
    with pytest.raises(OperandError, match="addmm: beta is a float; allowed for products of int32"):
        tensorplay.addmm(*[host(array.astype(np.int32)) for array in (BIAS, A, B)], beta=0.5)


def test_tensors_without_one_dense_memory_are_refused(torch: Any, host: Put) -> None:
    with pytest.raises(OperandError, match="layout sparse_csr"):
        tensorplay.mm(torch.Tensor(A, -1, layout="sparse_csr"), host(B))


def test_tensors_without_values_are_multiplied_by_their_like_only(torch: Any, host: Put) -> None:
    hollow = host(B)
    hollow.device = "meta"
    with pytest.raises(OperandError, match="on the devices cpu, meta"):
        tensorplay.mm(host(A), hollow)
