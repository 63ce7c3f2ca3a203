import numpy as np
import pytest

from tensorplay.backends.host import pointer as module
from tensorplay.backends.host.kernel import Array
from tensorplay.backends.host.pointer import pointer_to

ARRAYS = [
    np.arange(12.0).reshape(3, 4),
    np.arange(12.0).reshape(3, 4)[1:, 2:],
    np.arange(12.0).reshape(3, 4).T,
    np.arange(12.0)[::-1],
    np.frombuffer(bytes(64), np.float32),
    np.empty((0, 3)),
    np.zeros(9, np.uint8)[1:].view(np.float32),
]


@pytest.mark.parametrize("array", ARRAYS, ids=range(len(ARRAYS)))
def test_the_pointer_is_the_address_of_the_first_element_in_both_ways(array: Array) -> None:
    assert pointer_to(array).value == array.ctypes.data
    assert module._pointer_by_interface(array).value == array.ctypes.data


def test_another_interpreter_is_never_read_by_object_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.implementation", type("Implementation", (), {"name": "pypy"}))
    assert module._fastest() is module._pointer_by_interface


def test_another_object_layout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HEADER_BYTES", 0)
    assert module._fastest() is module._pointer_by_interface
