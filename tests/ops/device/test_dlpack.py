"""DLPack as NumPy reads and writes it, and as nobody should."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.errors import OperandError
from tensorplay.ops.device import dlpack
from tensorplay.ops.device.dlpack import HOST, Tensor, capsule_of, tensor_of


class Exporter:
    """An array that is shown by our capsule."""

    def __init__(self, array: NDArray[Any], strides: tuple[int, ...] | None = None) -> None:
        self.array = array
        self.strides = strides

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST, 0

    def __dlpack__(self, **_: Any) -> Any:
        array = self.array
        return capsule_of(Tensor(array.ctypes.data, array.shape, self.strides, array.dtype.name, HOST, 0), array)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_numpy_reads_what_is_written(dtype: str) -> None:
    array = np.arange(6).astype(dtype).reshape(2, 3)
    for strides in ((3, 1), None):
        found = np.from_dlpack(Exporter(array, strides))
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype
    np.testing.assert_array_equal(np.from_dlpack(Exporter(array[:, :2], (3, 1))), array[:, :2])


def test_what_numpy_writes_is_read() -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    for array in (whole, whole.T, whole[1:, ::2], whole[::-1], np.array(1, np.float32), whole[:0]):
        found = tensor_of(array.__dlpack__())
        assert found.pointer == array.ctypes.data
        assert found.shape == array.shape
        assert (found.dtype, found.device_type) == ("float32", HOST)
        if array.ndim and array.size:
            assert found.strides == tuple(step // 4 for step in array.strides)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "float16"])
def test_types_that_numpy_lacks_go_through(name: str) -> None:
    written = Tensor(4096, (2, 3), (3, 1), name, dlpack.CUDA, 1)
    assert tensor_of(capsule_of(written, None)) == written


def test_other_types_are_named() -> None:
    assert tensor_of(np.zeros(3, np.int32).__dlpack__()).dtype == "int32"
    assert tensor_of(np.zeros(3, np.uint8).__dlpack__()).dtype == "uint8"
    assert tensor_of(np.zeros(3, bool).__dlpack__()).dtype == "bool8"


class Owner:
    """Whatever owns memory."""


class Producer:
    """Shows memory of an owner that it keeps no longer than its capsules do."""

    def __init__(self, tensor: Tensor, lives: Callable[[], object]) -> None:
        self.tensor, self.lives = tensor, lives

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.device_type, 0

    def __dlpack__(self, **_: Any) -> Any:
        return capsule_of(self.tensor, self.lives())


def test_the_memory_s_owner_lives_as_long_as_somebody_uses_it() -> None:
    owner = Owner()
    lives = weakref.ref(owner)
    capsule = capsule_of(Tensor(4096, (1,), None, "float32", HOST, 0), owner)
    del owner
    assert lives() is not None
    del capsule
    assert lives() is None

    numbers, owner = np.arange(1000.0), Owner()
    lives = weakref.ref(owner)
    shown = Tensor(numbers.ctypes.data, (1000,), (1,), "float64", HOST, 0)
    array = np.from_dlpack(Producer(shown, lives))
    del owner
    gc.collect()
    assert lives() is not None
    np.testing.assert_array_equal(array, numbers)
    del array
    gc.collect()
    assert lives() is None


def test_a_consumer_s_error_arrives_though_it_drops_the_capsule_while_raising() -> None:
    owner = Owner()
    lives = weakref.ref(owner)
    on_device = Tensor(4096, (4,), None, "float32", dlpack.CUDA, 0)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(Producer(on_device, lives))
    del owner
    gc.collect()
    assert lives() is None


def test_a_capsule_that_was_taken_or_is_none_is_refused() -> None:
    taken = np.zeros(3).__dlpack__()
    np.from_dlpack(type("Once", (), {"__dlpack__": lambda *_, **__: taken, "__dlpack_device__": lambda _: (1, 0)})())
    for capsule in (taken, object(), None):
        with pytest.raises(OperandError, match="no unused capsule"):
            tensor_of(capsule)


def test_what_no_memory_can_be_is_refused() -> None:
    with pytest.raises(OperandError, match=r"shows the shape \(2, -3\)"):
        tensor_of(capsule_of(Tensor(4096, (2, -3), None, "float32", dlpack.CUDA, 0), None))
    with pytest.raises(OperandError, match="shows 65 dimensions"):
        tensor_of(capsule_of(Tensor(4096, (1,) * 65, None, "float32", dlpack.CUDA, 0), None))
