"""A result that is given counts as changed, as after torch's own products, whichever way it was computed."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.cuda import grouped_mm, scaled_mm
from tensorplay.ops.device.torch_kind import written_note

ml_dtypes = pytest.importorskip("ml_dtypes")

Array = NDArray[Any]
Put = Callable[..., Any]
# Here it is a fake device's arrays, whose type no checker knows.
tensorplay: Any = package
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)


def random(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def products(put: Put) -> dict[str, Callable[[], Any]]:
    """Return calls that return the tensor that they were given for the result."""
    a, b, weight, bias, c = (put(random(*shape)) for shape in ((8, 4), (4, 16), (16, 4), (16,), (8, 16)))
    stacks = put(random(2, 8, 4)), put(random(2, 4, 16))
    wide, float8, turned = put(random(8, 32)), put(random(8, 32, dtype=E4M3)), put(random(16, 32, dtype=E4M3))
    return {
        "mm": lambda: tensorplay.mm(a, b, out=put(np.zeros((8, 16), np.float32))),
        "mm over its operand": lambda: tensorplay.mm(square := put(random(8, 8)), put(random(8, 8)), out=square),
        "mm into columns": lambda: tensorplay.mm(a, b, out=type(a)(put(np.zeros((16, 8), np.float32)).host.T)),
        "linear": lambda: tensorplay.linear(a, weight, bias, out=put(np.zeros((8, 16), np.float32))),
        "addmm": lambda: tensorplay.addmm(bias, a, b, out=put(np.zeros((8, 16), np.float32))),
        "addmm of a matrix": lambda: tensorplay.addmm(c, a, b, out=put(np.zeros((8, 16), np.float32))),
        "bmm": lambda: tensorplay.bmm(*stacks, out=put(np.zeros((2, 8, 16), np.float32))),
        "matmul": lambda: tensorplay.matmul(*stacks, out=put(np.zeros((2, 8, 16), np.float32))),
        "scaled_mm": lambda: scaled_mm(float8, type(wide)(turned.host.T), out=put(np.zeros((8, 16), np.float32))),
        "grouped_mm": lambda: grouped_mm([a] * 4, [b] * 4, out=[put(np.zeros((8, 16), np.float32)) for _ in range(4)]),
    }


NAMES = [
    "mm", "mm over its operand", "mm into columns", "linear", "addmm", "addmm of a matrix", "bmm", "matmul",
    "scaled_mm", "grouped_mm",
]  # fmt: skip


@pytest.mark.usefixtures("context", "backend")
@pytest.mark.parametrize("name", NAMES)
def test_a_given_result_counts_as_changed_in_the_first_call_and_in_later_ones(put: Put, name: str) -> None:
    product = products(put)[name]
    for call in range(5):
        found = product()
        for tensor in found if isinstance(found, list) else [found]:
            assert tensor._version > 0, f"call {call}"


@pytest.mark.usefixtures("context", "backend")
def test_nothing_else_counts_as_changed(put: Put) -> None:
    a, b, bias = (put(random(*shape)) for shape in ((8, 4), (4, 16), (16,)))
    for _ in range(4):
        made = [tensorplay.mm(a, b), tensorplay.addmm(bias, a, b)]
        tensorplay.mm(a, b, out=put(np.zeros((8, 16), np.float32)))
        assert [tensor._version for tensor in (a, b, bias, *made)] == [0] * 5


def test_a_torch_that_counts_one_at_a_time_is_asked_so_and_one_that_cannot_is_not_asked(torch: Any, put: Put) -> None:
    changed: list[Any] = []

    def older(tensor: Any) -> None:
        if isinstance(tensor, tuple):
            raise TypeError("increment_version(): argument must be Tensor, not tuple")
        changed.append(tensor)

    torch._C._increment_version = older
    torch.autograd.graph = SimpleNamespace(increment_version=older)
    written_note.cache_clear()
    tensors = put(random(2, 2)), put(random(2, 2))
    written_note()(tensors)
    assert changed == list(tensors)
    torch.autograd.graph = SimpleNamespace()
    del torch._C._increment_version
    written_note.cache_clear()
    written_note()(tensors)
    assert len(changed) == 2
