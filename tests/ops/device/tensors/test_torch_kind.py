"""Tensors that need more than an address: gradients, lazy conjugates, layouts, TF32's switch, the host."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError

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


def test_an_older_torch_s_switch_is_read(torch: Any, put: Put, backend: Any) -> None:
    del torch._C._get_fp32_precision_getter
    torch.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)))
    a = put(random(8, 8))
    tensorplay.mm(a, put(random(8, 8)))
    assert backend.launches[-1][0].dtype.name == "tf32"


def test_a_gradient_that_would_be_lost_is_refused(torch: Any, put: Put) -> None:
    a, weight = put(random(8, 8)), torch.nn.Parameter(put(random(8, 8)).host)
    with torch.no_grad():
        for _ in range(2):
            close(tensorplay.mm(a, weight), a.host @ weight.host)
            close(tensorplay.linear(a, weight), a.host @ weight.host.T)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: tensorplay.mm(a, weight),
        lambda: tensorplay.mm(weight, a),
        lambda: tensorplay.linear(a, weight),
        lambda: tensorplay.addmm(weight, a, a),
    )
    for call in calls:
        with pytest.raises(OperandError, match=r"torch\.no_grad"):
            call()


def test_tensors_without_one_dense_memory_are_refused(torch: Any, put: Put) -> None:
    class Wrapped(torch.Tensor):  # type: ignore[misc] # the fake has no type here
        __torch_dispatch__ = "mine"

    a = random(4, 4)
    for given in (torch.Tensor(a, layout="sparse_csr"), Wrapped(a)):
        with pytest.raises(OperandError, match="plain tensors"):
            tensorplay.mm(given, put(a))


def test_a_lazy_conjugate_is_carried_out(torch: Any, put: Put) -> None:
    a = (random(4, 4) + 1j * random(4, 4, seed=1)).astype(np.complex64)
    tensor = put(a)
    for _ in range(2):
        close(tensorplay.mm(tensor, tensor), a @ a)
        close(tensorplay.mm(tensor.conj(), tensor), a.conj() @ a)
        close(tensorplay.mm(tensor, put(a)), a @ a)
    with pytest.raises(OperandError, match="lazily conjugated"):
        tensorplay.mm(tensor, tensor, out=put(a).conj())
