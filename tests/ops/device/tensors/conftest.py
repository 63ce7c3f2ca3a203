"""A fake torch on host memory: its tensors, and what its users can switch."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.ops.activation import activate
from tensorplay.ops.device import kinds, torch_kind, torch_shortcut

Array = NDArray[Any]


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


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a fake torch, with what its users can switch as attributes `grad`, `precision` and `stream`."""
    module: Any = ModuleType("torch")
    for name in torch_kind._NAMES:
        setattr(module, name, f"torch.{name}")
    module.Tensor, module.strided, module.contiguous_format = FakeTensor, "strided", "contiguous"
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
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(kinds, "_by_type", {})
    monkeypatch.setattr(kinds, "shortcuts", kinds.shortcuts)
    made = (
        torch_kind.dtype_names,
        torch_kind.raw_stream,
        torch_kind.precision_switch,
        torch_kind.quick_tf32_switch,
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
