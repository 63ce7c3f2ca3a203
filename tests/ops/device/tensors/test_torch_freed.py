"""Tensors whose storage was freed, as those of sharded programs are: they have a shape, and the address 0."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.cuda import grouped_mm, scaled_mm
from tensorplay.errors import OperandError

ml_dtypes = pytest.importorskip("ml_dtypes")

Array = NDArray[Any]
Put = Callable[[Array], Any]
# Here it is a fake device's arrays, whose type no checker knows.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context", "torch")
NO_MEMORY = "has the shape .* and no memory: its address is 0"
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)


def random(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def calls(put: Put) -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Return each operation with tensors for it."""

    def made(*shapes: tuple[int, ...]) -> list[Any]:
        return [put(random(*shape)) for shape in shapes]

    return {
        "mm": (tensorplay.mm, made((3, 5), (5, 4))),
        "mm out": (lambda a, b, out: tensorplay.mm(a, b, out=out), made((3, 5), (5, 4), (3, 4))),
        "matmul": (tensorplay.matmul, made((2, 3, 5), (5, 4))),
        "bmm": (tensorplay.bmm, made((2, 3, 5), (2, 5, 4))),
        "bmm out": (lambda a, b, out: tensorplay.bmm(a, b, out=out), made((2, 3, 5), (2, 5, 4), (2, 3, 4))),
        "linear": (tensorplay.linear, made((3, 5), (4, 5), (4,))),
        "linear out": (lambda x, w, out: tensorplay.linear(x, w, out=out), made((3, 5), (4, 5), (3, 4))),
        "addmm": (tensorplay.addmm, made((4,), (3, 5), (5, 4))),
        "addmm of a matrix": (tensorplay.addmm, made((3, 4), (3, 5), (5, 4))),
    }


NAMES = ["mm", "mm out", "matmul", "bmm", "bmm out", "linear", "linear out", "addmm", "addmm of a matrix"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("known", [0, 3])
def test_such_a_tensor_is_refused_also_where_tensors_like_it_are_known(
    put: Put, backend: Any, monkeypatch: pytest.MonkeyPatch, name: str, known: int
) -> None:
    operation, tensors = calls(put)[name]
    for _ in range(known):
        operation(*tensors)
    ran = len(backend.launches)
    for tensor in tensors:
        with monkeypatch.context() as patch:
            patch.setattr(tensor, "data_ptr", lambda: 0)
            with pytest.raises(OperandError, match=NO_MEMORY):
                operation(*tensors)
    assert len(backend.launches) == ran


@pytest.mark.parametrize("known", [0, 3])
def test_a_group_with_such_a_tensor_is_refused(
    put: Put, backend: Any, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    left, right = ([put(random(*shape)) for _ in range(4)] for shape in ((3, 5), (5, 4)))
    for _ in range(known):
        grouped_mm(left, right)
    for tensor in (left[0], right[0]):
        with monkeypatch.context() as patch:
            patch.setattr(
                type(tensor), "data_ptr", lambda self, gone=tensor: self.host.ctypes.data * (self is not gone)
            )
            with pytest.raises(OperandError, match=NO_MEMORY):
                grouped_mm(left, right)


@pytest.mark.parametrize("known", [0, 3])
def test_a_scaled_product_of_such_a_tensor_is_refused(
    torch: Any, put: Put, backend: Any, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    a, b = put(random(8, 32, dtype=E4M3)), torch.Tensor(put(random(16, 32, dtype=E4M3)).host.T)
    scale, out = put(np.ones(1, np.float32)), put(random(8, 16))

    def multiply() -> None:
        scaled_mm(a, b, scale_a=scale, out=out)

    for _ in range(known):
        multiply()
    ran = len(backend.launches)
    for tensor in (a, b, scale, out):
        with monkeypatch.context() as patch:
            patch.setattr(tensor, "data_ptr", lambda: 0)
            with pytest.raises(OperandError, match=NO_MEMORY):
                multiply()
    assert len(backend.launches) == ran
