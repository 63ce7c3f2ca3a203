"""Arrays that are known only by DLPack or the interface, and what they may say that is not so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError
from tensorplay.ops.device import edge, exchange_kind
from tensorplay.ops.device.dlpack import CUDA, HOST, Tensor, capsule_of

Array = NDArray[Any]
Make = Callable[..., Any]
# Here it is arrays of nobody's, whose type no checker knows.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context", "device")


class Shown:
    """An array in host memory that says it is on a GPU, by DLPack; `said` is what differs from what is so."""

    def __init__(self, host: Array, *, exports: int = 100, **said: Any) -> None:
        self.host, self.shape, self.exports = host, said.get("shape", host.shape), exports
        self.device, self.told = said.get("device", (CUDA, 0)), said.get("told", (CUDA, 0))
        self.pointer, self.sizes = said.get("pointer", host.ctypes.data), said.get("sizes", host.shape)

    def __dlpack_device__(self) -> Any:
        return raised(self.told)

    def __dlpack__(self, *, stream: int) -> object:
        self.exports -= 1
        if self.exports < 0:
            raise RuntimeError("it was taken already")
        raised(self.pointer)
        return capsule_of(Tensor(self.pointer, self.sizes, None, self.host.dtype.name, *self.device), self.host)


class Interfaced:
    """An array in host memory that says it is on a GPU, by nothing but its interface."""

    def __init__(self, host: Array, **said: Any) -> None:
        self.host = host
        data = (host.ctypes.data, False)
        self.interface: Any = {"shape": host.shape, "typestr": host.dtype.str, "data": data, "version": 3} | said

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.interface


def raised(value: Any) -> Any:
    if isinstance(value, BaseException):
        raise value
    return value


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, aligned: Callable[..., Array]) -> None:
    """Let new arrays be in host memory as well, and nothing be waited for."""
    monkeypatch.setattr(exchange_kind, "new_array", lambda shape, dtype, *_, **__: Shown(aligned(shape, dtype)))
    monkeypatch.setattr(exchange_kind, "owner_of", lambda *_: 0)
    monkeypatch.setattr(edge, "synchronize", lambda *_: None)


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


A, B = random(5, 6), random(6, 7)


@pytest.mark.parametrize("made", [Shown, Interfaced])
def test_what_shows_its_memory_is_multiplied_there(made: Make) -> None:
    for _ in range(2):
        np.testing.assert_allclose(tensorplay.mm(made(A), made(B)).host, A @ B, rtol=1e-5)
        out = made(np.zeros((5, 7), np.float32))
        assert tensorplay.mm(made(A), made(B), out=out) is out
        np.testing.assert_allclose(out.host, A @ B, rtol=1e-5)
        np.testing.assert_allclose(tensorplay.linear(made(A), made(A)).host, A @ A.T, rtol=1e-5)


def test_an_array_that_can_be_shown_once_is_shown_once() -> None:
    given = [Shown(each, exports=1) for each in (A, B, np.zeros((5, 7), np.float32))]
    np.testing.assert_allclose(tensorplay.mm(given[0], given[1]).host, A @ B, rtol=1e-5)
    given = [Shown(each, exports=1) for each in (A, B, np.zeros((5, 7), np.float32), random(7))]
    tensorplay.addmm(given[3], given[0], given[1], out=given[2])
    np.testing.assert_allclose(given[2].host, random(7) + A @ B, rtol=1e-5, atol=1e-6)
    with pytest.raises(OperandError, match="does not show its memory: it was taken already"):
        tensorplay.mm(given[0], given[1])


def test_a_shape_that_differs_from_the_memory_s_is_refused() -> None:
    for shown in ((2, 3), (30,), (5, 60), ()):
        with pytest.raises(OperandError, match=r"says that its shape is \(5, 6\), and shows memory of \("):
            tensorplay.mm(Shown(A, sizes=shown), Shown(B))
    liar = Interfaced(A, shape=(2, 3))
    liar.shape = (5, 6)  # type: ignore[attr-defined]  # what it says of itself
    with pytest.raises(OperandError, match=r"says that its shape is \(5, 6\), and shows memory of \(2, 3\)"):
        tensorplay.mm(liar, Interfaced(B))
    with pytest.raises(OperandError, match="has no shape"):
        tensorplay.mm(Shown(A, shape=None), Shown(B))
    with pytest.raises(OperandError, match="has a shape of type int"):
        tensorplay.mm(Shown(A, shape=5), Shown(B))


@pytest.mark.parametrize("device", [(HOST, 0), (10, 0)])
def test_memory_of_another_kind_of_device_is_refused(device: tuple[int, int]) -> None:
    with pytest.raises(OperandError, match=f"says that it is on a GPU, and shows memory.*type {device[0]}"):
        tensorplay.mm(Shown(A, device=device), Shown(B))


def test_memory_of_another_device_is_refused() -> None:
    with pytest.raises(OperandError, match="says that it is on device 0, and shows memory of device 1"):
        tensorplay.mm(Shown(A, device=(CUDA, 1)), Shown(B))


def test_an_address_of_nothing_is_refused_unless_there_is_nothing() -> None:
    for left, right in ((Shown(A, pointer=0), Shown(B)), (Interfaced(A, data=(0, False)), Interfaced(B))):
        with pytest.raises(OperandError, match=r"has the shape \(5, 6\) and no memory"):
            tensorplay.mm(left, right)
    with pytest.raises(OperandError, match=r"has the shape \(5, 7\) and no memory"):
        tensorplay.mm(Shown(A), Shown(B), out=Shown(random(5, 7), pointer=0))
    with pytest.raises(OperandError, match=r"has the shape \(7,\) and no memory"):
        tensorplay.addmm(Shown(random(7), pointer=0), Shown(A), Shown(B))
    assert tensorplay.mm(Shown(A[:0], pointer=0), Shown(B)).shape == (0, 7)


@pytest.mark.parametrize("told", [None, (), 5, ("a", 0), (2,), (2, 0, 0), (2.0, 0)])
def test_a_device_that_is_none_is_refused(told: Any) -> None:
    with pytest.raises(OperandError, match=r"__dlpack_device__ of an operand of type Shown says .*; allowed"):
        tensorplay.mm(Shown(A, told=told), Shown(B))


@pytest.mark.parametrize("refusal", [BufferError, RuntimeError, TypeError, ValueError])
def test_a_library_s_refusal_is_told_in_our_words(refusal: type[Exception]) -> None:
    with pytest.raises(OperandError, match="does not say which device it is on: not now"):
        tensorplay.mm(Shown(A, told=refusal("not now")), Shown(B))
    with pytest.raises(OperandError, match="does not show its memory: not now"):
        tensorplay.mm(Shown(A, pointer=refusal("not now")), Shown(B))


def test_a_library_s_own_fault_is_told_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError, match="a defect"):
        tensorplay.mm(Shown(A, told=ZeroDivisionError("a defect")), Shown(B))


@pytest.mark.parametrize("interface", [7, [], "text", object()])
def test_an_interface_that_is_no_dictionary_is_refused(interface: Any) -> None:
    given = Interfaced(A)
    given.interface = interface
    with pytest.raises(OperandError, match=r"is of type .*; allowed: a dictionary"):
        tensorplay.mm(given, Interfaced(B))
