"""A fake torch on host memory: its tensors, and what its users can switch."""

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.extensions import extension
from tensorplay.ops.activation import activate
from tensorplay.ops.device import kinds, torch_kind, torch_shortcut

Array = NDArray[Any]
# Here it is a fake device's arrays, whose type no checker knows.
tensorplay: Any = package


class FakeTensor:
    """As `torch.Tensor`, in host memory, on a fake device unless `device` is -1."""

    __torch_dispatch__: Any = "disabled"

    def __init__(self, host: Array, device: int = 0, *, requires_grad: bool = False, layout: str = "strided") -> None:
        self.host, self._device = host, device
        self.shape, self.ndim = host.shape, host.ndim
        self.dtype = f"torch.{host.dtype.name}"
        self.device = f"cuda:{device}" if device >= 0 else "cpu"
        self.is_cuda, self.requires_grad, self.layout = device >= 0, requires_grad, layout
        self.conjugated = False
        # How often it was changed.
        self._version = 0
        self.numbers: Any = None

    def data_ptr(self) -> int:
        return self.host.ctypes.data

    def numel(self) -> int:
        return self.host.size

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.host.itemsize for step in self.host.strides)

    def get_device(self) -> int:
        return self._device

    def is_conj(self) -> bool:
        return self.conjugated

    def is_neg(self) -> bool:
        return False

    def conj(self) -> "FakeTensor":
        lazy = FakeTensor(self.host, self._device)
        lazy.conjugated = True
        return lazy

    def resolve_conj(self) -> "FakeTensor":
        return FakeTensor(self.host.conj().copy(), self._device)

    def resolve_neg(self) -> "FakeTensor":
        return self

    def new_empty(self, shape: tuple[int, ...], dtype: Any = None) -> "FakeTensor":
        dtype = np.dtype(str(dtype or self.dtype).removeprefix("torch."))
        memory = np.full(int(np.prod(shape)) * dtype.itemsize + 256, 0xFF, np.uint8)
        start = -memory.ctypes.data % 256
        size = int(np.prod(shape)) * dtype.itemsize
        return FakeTensor(memory[start : start + size].view(dtype).reshape(shape), self._device)

    def new_zeros(self, shape: tuple[int, ...], dtype: Any = None) -> "FakeTensor":
        made = self.new_empty(shape, dtype)
        made.host[...] = 0
        return made

    def detach(self) -> "FakeTensor":
        return self

    def expand(self, shape: tuple[int, ...]) -> "FakeTensor":
        return FakeTensor(np.broadcast_to(self.host, shape), self._device)

    def clone(self, memory_format: Any) -> "FakeTensor":
        made = self.new_empty(self.shape)
        made.host[...] = self.host
        return made

    def copy_(self, other: "FakeTensor") -> None:
        self.host[...] = other.host
        self._version += 1


class FakeParameter(FakeTensor):
    """As `torch.nn.Parameter`."""

    def __init__(self, host: Array) -> None:
        super().__init__(host, requires_grad=True)


FakeTensor.__module__ = FakeParameter.__module__ = "torch"


class NoGrad:
    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def __enter__(self) -> None:
        self._before, self._torch.grad = self._torch.grad, False

    def __exit__(self, *_: object) -> None:
        self._torch.grad = self._before


def multiplied(a: FakeTensor, b: FakeTensor) -> FakeTensor:
    """As torch's products on the host, which refuse what is of two types."""
    assert not a.is_cuda
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected the same dtype, but got {a.dtype} and {b.dtype}\nand a trace")
    return FakeTensor(np.matmul(a.host, b.host), -1)


def added(c: FakeTensor, a: FakeTensor, b: FakeTensor, *, alpha: float, beta: float) -> FakeTensor:
    """As `torch.addmm`, which does not read `c` where its factor is 0."""
    product = multiplied(a, b).host * np.asarray(alpha, a.host.dtype)
    return FakeTensor(product + np.asarray(beta, product.dtype) * c.host if beta else product, -1)


def through_layer(x: FakeTensor, weight: FakeTensor, bias: FakeTensor | None = None) -> FakeTensor:
    """As `torch.nn.functional.linear`."""
    product = multiplied(x, FakeTensor(weight.host.T, -1)).host
    return FakeTensor(product if bias is None else product + bias.host, -1)


def activated(function: str) -> Callable[..., FakeTensor]:
    """Return an activation of torch's, which is told apart by NumPy's as the host has it."""
    return lambda tensor, **_: FakeTensor(activate(tensor.host, function), -1)


class View(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_: ClassVar[Any] = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


ViewOf = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(View))
StreamOf = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    """DLPack's DLPackExchangeAPI."""

    _fields_: ClassVar[Any] = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("unused", ctypes.c_void_p * 3),
        ("view", ViewOf),
        ("current_stream", StreamOf),
    ]


# A capsule does not copy its name.
CAPSULE_NAME = b"dlpack_exchange_api"


def exchange_of(torch: Any) -> Exchange:
    """Return what torch has as functions for C, of fake tensors."""

    def view(tensor: FakeTensor, into: Any) -> int:
        code = {"f": 2, "c": 5}.get(tensor.host.dtype.kind)
        if code is None:
            return -1
        if tensor.numbers is None:
            # As long as the tensor, and in one place: what is pointed to is its own.
            tensor.numbers = (ctypes.c_int64 * (2 * tensor.ndim))(*tensor.shape, *tensor.stride())
        at = ctypes.addressof(tensor.numbers)
        device = (2, tensor.get_device()) if tensor.is_cuda else (1, 0)
        bits = 8 * tensor.host.itemsize
        into[0] = View(tensor.data_ptr(), *device, tensor.ndim, code, bits, 1, at, at + 8 * tensor.ndim, 0)
        return 0

    def current_stream(device_type: int, device: int, into: Any) -> int:
        into[0] = torch.stream + device if device_type == 2 else None
        return 0

    return Exchange(1, 3, None, (ctypes.c_void_p * 3)(), ViewOf(view), StreamOf(current_stream))


def capsule_of(exchange: Exchange) -> object:
    """Return the capsule that a type has; the functions must outlive it."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(exchange), CAPSULE_NAME, None)


def count_change(tensors: Iterable[FakeTensor]) -> None:
    """As torch's own, which takes many tensors."""
    for tensor in tensors:
        tensor._version += 1


@pytest.fixture(params=["hits in Python", "hits in C"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a fake torch, with what its users can switch as attributes `grad`, `precision` and `stream`.

    It is one with functions for C, and one without, as torch was before 2.11.
    """
    module: Any = ModuleType("torch")
    for name in torch_kind._NAMES:
        setattr(module, name, f"torch.{name}")
    module.Tensor, module.strided, module.contiguous_format = FakeTensor, "strided", "contiguous"
    module.empty = lambda size: FakeTensor(np.empty(size, np.float32), -1)
    module.autograd = SimpleNamespace(graph=SimpleNamespace())
    module.mm = module.bmm = module.matmul = multiplied
    module.addmm = added
    functional = SimpleNamespace(linear=through_layer, relu=activated("relu"), gelu=activated("gelu"))
    module.nn = SimpleNamespace(Parameter=FakeParameter, functional=functional)
    module.grad, module.precision, module.stream = True, "none", 0x60
    module.is_grad_enabled = lambda: module.grad
    module.no_grad = lambda: NoGrad(module)
    module._C = SimpleNamespace(
        _cuda_getCurrentRawStream=lambda device: module.stream + device,
        _get_fp32_precision_getter=lambda *_: module.precision,
        _increment_version=count_change,
    )
    exchange = exchange_of(module)
    if request.param == "hits in C":
        if extension("tensorplay.ops.device._direct") is None:
            pytest.skip("the extension was not built: no compiler, or no headers")
        monkeypatch.setattr(FakeTensor, "__dlpack_c_exchange_api__", capsule_of(exchange), raising=False)
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(kinds, "_by_type", {})
    monkeypatch.setattr(kinds, "shortcuts", kinds.shortcuts)
    made = (
        torch_kind.dtype_names,
        torch_kind.raw_stream,
        torch_kind.precision_switch,
        torch_kind.quick_tf32_switch,
        torch_kind.written_note,
        torch_shortcut.torch_shortcut,
    )
    for each in made:
        each.cache_clear()
    yield module
    kinds.shortcuts.clear()
    for each in made:
        each.cache_clear()


@pytest.fixture
def put(torch: Any) -> Callable[[Array], FakeTensor]:
    """Return what puts a host array on the fake device, as aligned as torch's allocator does."""

    def moved(array: Array) -> FakeTensor:
        made = FakeTensor(array).new_empty(array.shape)
        made.host[...] = array
        return made

    return moved


@pytest.fixture
def long(torch: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return a list of the calls that went on to Python."""
    calls: list[tuple[Any, ...]] = []
    in_python = torch_shortcut.TorchShortcut.mm_in_python

    def noted(self: torch_shortcut.TorchShortcut, context: Any, a: Any, b: Any, out: Any) -> Any:
        calls.append((a, b, out))
        return in_python(self, context, a, b, out)

    monkeypatch.setattr(torch_shortcut.TorchShortcut, "mm_in_python", noted)
    return calls


@pytest.fixture
def known(put: Callable[..., Any], long: list[tuple[Any, ...]]) -> tuple[Any, Any, Any]:
    """Return tensors whose layout is known, with a result and without one."""
    rng = np.random.default_rng(0)
    a, b = (put(rng.uniform(-1, 1, shape).astype(np.float32)) for shape in ((8, 4), (4, 16)))
    out = put(np.zeros((8, 16), np.float32))
    for _ in range(3):
        tensorplay.mm(a, b, out=out)
        tensorplay.mm(a, b)
    long.clear()
    return a, b, out
