"""Arrays of our own, and of libraries known by what they show alone, on device memory that is the host's."""

import ctypes
import gc
import weakref
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.cuda import DeviceArray, asarray, grouped_mm
from tensorplay.errors import OperandError
from tensorplay.ops.device import array as array_module
from tensorplay.ops.device import edge, exchange_kind, own_kind
from tensorplay.ops.device import groups as groups_module
from tensorplay.ops.device.dlpack import CUDA, Tensor, capsule_of, tensor_of

Array = NDArray[Any]
# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context", "host_memory")


class HostMemory:
    """As `ArrayMemory`, in host memory."""

    live: ClassVar[dict[int, Array]] = {}

    def __init__(self, ordinal: int, nbytes: int) -> None:
        memory = np.full(nbytes + 256, 0xFF, np.uint8)
        self.address = memory.ctypes.data + -memory.ctypes.data % 256
        self.live[self.address] = memory
        self.buffer = f"buffer of {nbytes} bytes"
        weakref.finalize(self, self.live.pop, self.address)


@pytest.fixture
def host_memory(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Let device memory be the host's, and return what was done to streams."""
    done = SimpleNamespace(ordered=[], synchronized=[])

    def copy_to(pointer: int, array: Array, ordinal: int) -> None:
        assert array.flags.c_contiguous
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    monkeypatch.setattr(array_module, "ArrayMemory", HostMemory)
    monkeypatch.setattr(array_module, "copy_to", copy_to)
    monkeypatch.setattr(own_kind, "copy_to", copy_to)
    monkeypatch.setattr(
        array_module, "copy_from", lambda array, pointer, _: ctypes.memmove(array.ctypes.data, pointer, array.nbytes)
    )
    monkeypatch.setattr(array_module, "fill_zero", lambda pointer, nbytes, _: ctypes.memset(pointer, 0, nbytes))
    monkeypatch.setattr(array_module, "chosen_device", lambda device: device or 0)
    monkeypatch.setattr(array_module, "order", lambda *streams: done.ordered.append(streams))
    monkeypatch.setattr(exchange_kind, "owner_of", lambda _: 0)
    monkeypatch.setattr(edge, "order", lambda *streams: done.ordered.append(streams))
    monkeypatch.setattr(edge, "synchronize", lambda *stream: done.synchronized.append(stream))
    return done


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


class TestDeviceArray:
    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
    def test_goes_there_and_back(self, shape: tuple[int, ...], dtype: str) -> None:
        array = random(*shape).astype(dtype)
        put = asarray(array)
        assert (put.shape, put.dtype, put.ndim, put.size, put.nbytes) == (
            shape,
            array.dtype,
            array.ndim,
            array.size,
            array.nbytes,
        )
        np.testing.assert_array_equal(put.numpy(), array)

    @pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
    def test_takes_the_types_that_numpy_lacks(self, name: str) -> None:
        ml_dtypes = pytest.importorskip("ml_dtypes")
        array = random(3, 4).astype(getattr(ml_dtypes, name))
        put = asarray(array)
        np.testing.assert_array_equal(put.numpy(), array)
        assert tensor_of(put.__dlpack__()).dtype == name
        assert not hasattr(put, "__cuda_array_interface__")

    def test_is_dense_whatever_it_was_made_of(self) -> None:
        for array in (random(4, 6).T, random(4, 6)[::-1, ::2], random(3, 3).astype(">f4")):
            put = asarray(array)
            np.testing.assert_array_equal(put.numpy(), array)
            assert put.dtype.isnative
        assert asarray([[1.0, 2.0]]).shape == (1, 2)

    def test_that_is_there_already_is_not_copied(self) -> None:
        put = asarray(random(3))
        assert asarray(put) is put
        assert asarray(put, 0) is put
        moved = asarray(put, 1)
        assert moved.device == 1
        np.testing.assert_array_equal(moved.numpy(), put.numpy())

    @pytest.mark.parametrize("array", [np.zeros(3, np.int32), np.zeros(3, bool), np.array(["a"]), np.zeros(2, object)])
    def test_of_a_type_that_is_not_multiplied_is_refused(self, array: Array) -> None:
        with pytest.raises(OperandError, match="is not put on a device"):
            asarray(array)

    def test_frees_its_memory_when_nobody_uses_it(self) -> None:
        gc.collect()
        before = len(HostMemory.live)
        put = asarray(random(3))
        capsule: object = put.__dlpack__()
        del put
        gc.collect()
        assert len(HostMemory.live) == before + 1
        del capsule
        gc.collect()
        assert len(HostMemory.live) == before

    def test_makes_the_stream_of_who_takes_it_wait(self, host_memory: SimpleNamespace) -> None:
        put = asarray(random(3))
        for stream in (None, -1, 0, 1):
            put.__dlpack__(stream=stream)
        assert host_memory.ordered == []
        put.__dlpack__(stream=0x77, max_version=(1, 1))
        assert host_memory.ordered == [(0, 0x77, 1)]

    def test_is_shown_where_it_is_only(self) -> None:
        put = asarray(random(3))
        put.__dlpack__(dl_device=(CUDA, 0), copy=False)
        for asked in ({"copy": True}, {"dl_device": (1, 0)}, {"dl_device": (CUDA, 1)}):
            with pytest.raises(BufferError, match="numpy"):
                put.__dlpack__(**asked)

    def test_shows_itself_by_the_interface_too(self) -> None:
        put = asarray(random(2, 3))
        shown = put.__cuda_array_interface__
        assert shown["data"] == (put.pointer, False)
        assert (shown["shape"], shown["typestr"], shown["version"]) == ((2, 3), "<f4", 3)
        assert asarray(random(0)).__cuda_array_interface__["data"] == (0, False)

    def test_shows_its_memory_as_a_buffer(self) -> None:
        assert asarray(random(2, 3)).buffer == "buffer of 24 bytes"

    def test_has_a_length_and_a_short_text(self) -> None:
        assert len(asarray(random(3, 2))) == 3
        with pytest.raises(TypeError, match="no length"):
            len(asarray(1.0))
        assert repr(asarray(random(2, 3))) == "DeviceArray(shape=(2, 3), dtype=float32, device=0)"


class TestProductsOfOurArrays:
    def test_are_our_arrays(self) -> None:
        a, b, c = random(3, 5), random(5, 4), random(3, 1)
        for _ in range(2):
            found = tensorplay.mm(asarray(a), asarray(b))
            assert type(found) is DeviceArray
            np.testing.assert_allclose(found.numpy(), a @ b, rtol=1e-4, atol=1e-5)
            found = tensorplay.addmm(asarray(c), asarray(a), asarray(b), beta=2)
            np.testing.assert_allclose(found.numpy(), 2 * c + a @ b, rtol=1e-4, atol=1e-5)
            found = tensorplay.linear(asarray(a), asarray(b.T), asarray(random(4)))
            np.testing.assert_allclose(found.numpy(), a @ b + random(4), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(
            tensorplay.mm(asarray(random(2, 0)), asarray(random(0, 3))).numpy(), np.zeros((2, 3))
        )

    def test_may_be_written_over_an_operand(self) -> None:
        a, b = random(4, 4), random(4, 4, seed=1)
        put = asarray(a)
        assert tensorplay.mm(put, asarray(b), out=put) is put
        np.testing.assert_allclose(put.numpy(), a @ b, rtol=1e-4, atol=1e-5)

    def test_do_not_mix_with_the_host_or_another_library(self, cupy: Callable[..., Any]) -> None:
        a = random(3, 3)
        with pytest.raises(OperandError, match=r"numpy\.ndarray on the host"):
            tensorplay.mm(asarray(a), a)
        with pytest.raises(OperandError, match="of one library"):
            tensorplay.mm(asarray(a), cupy(a))


class FakeExchange:
    """An array of an unknown library, shown by DLPack as on device 0."""

    def __init__(self, host: Array) -> None:
        self.host = host
        self.shape = host.shape
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, *, stream: Any = None) -> object:
        self.streams.append(stream)
        steps = tuple(step // self.host.itemsize for step in self.host.strides)
        shown = Tensor(self.host.ctypes.data, self.host.shape, steps, self.host.dtype.name, CUDA, 0)
        return capsule_of(shown, self.host)


class FakeInterface:
    """An array of an unknown library that shows itself by `__cuda_array_interface__` alone."""

    def __init__(self, host: Array, **more: Any) -> None:
        self.host = host
        self.shape = host.shape
        self.more = more

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        host = self.host
        return {
            "shape": host.shape,
            "typestr": host.dtype.str,
            "data": (host.ctypes.data, not host.flags.writeable),
            "strides": host.strides,
            "version": 3,
        } | self.more


@pytest.mark.parametrize("kind", [FakeExchange, FakeInterface])
def test_other_libraries_arrays_are_read_in_place_and_waited_for(kind: Any, host_memory: SimpleNamespace) -> None:
    a, b, out = random(5, 3).T, random(5, 9)[:, :4], np.zeros((3, 4), np.float32)
    found = tensorplay.mm(kind(a), kind(b))
    assert type(found) is DeviceArray
    np.testing.assert_allclose(found.numpy(), a @ b, rtol=1e-4, atol=1e-5)
    assert host_memory.synchronized == [(0, 1)]
    given = kind(out)
    assert tensorplay.mm(kind(a), kind(b), out=given) is given
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)
    with pytest.raises(OperandError, match="copy it to dense memory first"):
        tensorplay.mm(kind(a[::-1]), kind(b))
    if kind is FakeExchange:
        assert given.streams
        assert set(given.streams) == {1}


def test_a_read_only_output_is_refused() -> None:
    out = np.zeros((3, 3), np.float32)
    out.flags.writeable = False
    with pytest.raises(OperandError, match="cannot be written to"):
        tensorplay.mm(FakeInterface(random(3, 3)), FakeInterface(random(3, 3)), out=FakeInterface(out))


def test_arrays_on_streams_of_their_own_are_ordered_before_and_after(host_memory: SimpleNamespace) -> None:
    tensorplay.mm(FakeInterface(random(3, 3), stream=7), FakeInterface(random(3, 3)))
    assert host_memory.ordered == [(0, 1, 7)]


def test_a_library_that_does_not_show_its_memory_is_named() -> None:
    class Hidden(FakeExchange):
        def __dlpack__(self, *, stream: Any = None) -> object:
            raise BufferError("not today")

    with pytest.raises(OperandError, match="Hidden does not show its memory: not today"):
        tensorplay.mm(Hidden(random(3, 3)), Hidden(random(3, 3)))


@pytest.mark.parametrize("kind", [asarray, FakeExchange, FakeInterface])
def test_a_group_of_them_goes_at_once_and_is_waited_for_once(
    kind: Any, host_memory: SimpleNamespace, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = [random(size, 8) for size in (1, 2, 3, 4, 5)], [random(8, 4) for _ in range(5)]
    runs = []

    def run(lefts: Sequence[int], rights: Sequence[int], outs: Sequence[int], *, stream: int) -> None:
        runs.append((len(lefts) + len(rights), stream))
        for a, b, out in zip(left, right, outs, strict=True):
            ctypes.memmove(out, (a @ b).ctypes.data, 4 * 4 * len(a))

    monkeypatch.setattr(backend, "name", "cublaslt")
    monkeypatch.setattr(groups_module, "grouped_call", lambda *_: SimpleNamespace(run=run))
    groups_module.groups.cache_clear()
    found = grouped_mm([kind(a) for a in left], [kind(b) for b in right])
    groups_module.groups.cache_clear()
    for each, a, b in zip(found, left, right, strict=True):
        assert type(each) is DeviceArray
        np.testing.assert_allclose(each.numpy(), a @ b, rtol=1e-4, atol=1e-5)
    assert runs == [(10, 1)]
    assert host_memory.synchronized == ([] if kind is asarray else [(0, 1)])
