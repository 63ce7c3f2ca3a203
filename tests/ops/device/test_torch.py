"""Tensors: the long way, the hot path that it prepares, and what neither takes; a fake torch on host memory."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.device import kinds, torch_kind, torch_shortcut
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
Put = Callable[..., Any]
# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context")


class FakeTensor:
    """As `torch.Tensor`, in host memory, on a fake device unless `device` is -1."""

    __torch_dispatch__: Any = "disabled"

    def __init__(self, host: Array, device: int = 0, *, requires_grad: bool = False, layout: str = "strided") -> None:
        self.host, self._device = host, device
        self.shape, self.ndim = host.shape, host.ndim
        self.dtype = f"torch.{host.dtype.name}"
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

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        assert not self.is_cuda
        return self.host


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


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a fake torch, with what its users can switch as attributes `grad`, `precision` and `stream`."""
    module: Any = ModuleType("torch")
    for name in torch_kind._NAMES:
        setattr(module, name, f"torch.{name}")
    module.Tensor, module.strided, module.contiguous_format = FakeTensor, "strided", "contiguous"
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
    made = (torch_kind.dtype_names, torch_kind.raw_stream, torch_kind.precision_switch, torch_shortcut.torch_shortcut)
    for each in made:
        each.cache_clear()
    yield module
    kinds.shortcuts.clear()
    for each in made:
        each.cache_clear()


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def aligned(array: Array) -> FakeTensor:
    made = FakeTensor(array).new_empty(array.shape)
    made.host[...] = array
    return made


def close(found: Any, expected: Array) -> None:
    assert isinstance(found, FakeTensor)
    np.testing.assert_allclose(found.host, expected, rtol=1e-4, atol=1e-5)


def directs(context: TuningContext) -> int:
    return len({id(each) for each in context.plans.values() if isinstance(each, Direct)})


def test_the_second_call_of_such_tensors_takes_the_hot_path(torch: Any, context: TuningContext, backend: Any) -> None:
    a, b = random(8, 4), random(4, 16)
    left, right, out = aligned(a), aligned(b), aligned(np.zeros((8, 16), np.float32))
    for call in range(4):
        out.host[...] = np.nan
        assert tensorplay.mm(left, right, out=out) is out
        close(out, a @ b)
        close(tensorplay.mm(left, right), a @ b)
        assert directs(context) == (2 if call else directs(context))
    assert context.stats()["measured"] == 1
    assert context.stats()["replayed"] == 7
    torch.stream = 0x90
    tensorplay.mm(left, right, out=out)
    assert backend.launches[-1][2] == 0x90


def test_tensors_of_the_same_shapes_that_differ_otherwise_are_not_mixed_up(torch: Any, backend: Any) -> None:
    square, other = random(8, 8), random(8, 8, seed=3)
    makes: list[Callable[[Array], FakeTensor]] = [
        aligned,
        lambda array: FakeTensor(aligned(array.T.copy()).host.T),
        lambda array: aligned(array.astype(np.float64)),
        lambda array: FakeTensor(aligned(np.hstack([array, array])).host[:, :8]),
    ]
    for _ in range(3):
        for make in makes:
            for second in makes:
                left, right = make(square), second(other)
                if left.dtype != right.dtype:
                    with pytest.raises(OperandError, match="converted in silence"):
                        tensorplay.mm(left, right)
                    continue
                close(tensorplay.mm(left, right), square @ other)
                close(tensorplay.mm(left, left), square @ square)
                out = aligned(np.zeros((8, 8), left.host.dtype))
                close(tensorplay.mm(left, right, out=out), square @ other)


def test_the_alignment_of_addresses_is_looked_at_in_each_call(torch: Any, backend: Any) -> None:
    memory = aligned(random(80)).host
    right = aligned(random(8, 8))
    for offset in (0, 1, 2, 4, 0, 1):
        a = FakeTensor(memory[offset : offset + 64].reshape(8, 8))
        for _ in range(2):
            close(tensorplay.mm(a, right), a.host @ right.host)
        assert backend.launches[-1][0].alignment == {0: 16, 1: 4, 2: 8, 4: 16}[offset]


def test_an_output_that_overlaps_an_operand_gets_the_right_result_on_the_hot_path_too(torch: Any) -> None:
    a, b = random(8, 8), random(8, 8, seed=1)
    for _ in range(3):
        tensorplay.mm(aligned(a), aligned(b), out=aligned(a))
        left, right = aligned(a), aligned(b)
        close(tensorplay.mm(left, right, out=left), a @ b)
        left = aligned(a)
        close(tensorplay.mm(left, right, out=right), a @ b)
        both = aligned(random(16, 8)).host
        expected = both[:8] @ b
        tensorplay.mm(FakeTensor(both[:8]), aligned(b), out=FakeTensor(both[4:12]))
        np.testing.assert_allclose(both[4:12], expected, rtol=1e-4, atol=1e-5)


def test_tf32_is_allowed_and_forbidden_between_two_calls(torch: Any, backend: Any) -> None:
    a = aligned(random(8, 8))
    for precision in ("none", "tf32", "tf32", "ieee", "ieee", "tf32"):
        torch.precision = precision
        tensorplay.mm(a, aligned(random(8, 8)))
        assert backend.launches[-1][0].dtype.name == ("tf32" if precision == "tf32" else "float32")


def test_an_older_torch_s_switch_is_read(torch: Any, backend: Any) -> None:
    del torch._C._get_fp32_precision_getter
    torch.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)))
    a = aligned(random(8, 8))
    tensorplay.mm(a, aligned(random(8, 8)))
    assert backend.launches[-1][0].dtype.name == "tf32"


def test_a_gradient_that_would_be_lost_is_refused(torch: Any) -> None:
    a, weight = aligned(random(8, 8)), FakeParameter(aligned(random(8, 8)).host)
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


def test_tensors_without_one_dense_memory_are_refused(torch: Any) -> None:
    class Wrapped(FakeTensor):
        __torch_dispatch__ = "mine"

    a = random(4, 4)
    for given in (FakeTensor(a, layout="sparse_csr"), Wrapped(a)):
        with pytest.raises(OperandError, match="plain CUDA tensors"):
            tensorplay.mm(given, aligned(a))


def test_a_lazy_conjugate_is_carried_out(torch: Any) -> None:
    a = (random(4, 4) + 1j * random(4, 4, seed=1)).astype(np.complex64)
    tensor = aligned(a)
    for _ in range(2):
        close(tensorplay.mm(tensor, tensor), a @ a)
        close(tensorplay.mm(tensor.conj(), tensor), a.conj() @ a)
        close(tensorplay.mm(tensor, aligned(a)), a @ a)
    with pytest.raises(OperandError, match="lazily conjugated"):
        tensorplay.mm(tensor, tensor, out=aligned(a).conj())


def test_tensors_on_the_host_are_numpy_s(torch: Any) -> None:
    a, b = random(3, 4), random(4, 5)
    for _ in range(2):
        np.testing.assert_allclose(tensorplay.mm(FakeTensor(a, -1), FakeTensor(b, -1)), a @ b, rtol=1e-6)
        np.testing.assert_allclose(tensorplay.linear(FakeTensor(a, -1), FakeTensor(b.T, -1)), a @ b, rtol=1e-6)
        with pytest.raises(OperandError, match="on the host"):
            tensorplay.mm(aligned(a), FakeTensor(b, -1))
        with pytest.raises(OperandError, match="on the host"):
            tensorplay.mm(FakeTensor(a, -1), aligned(b))


def test_errors_are_the_same_once_the_hot_path_is_known(torch: Any) -> None:
    a, b = aligned(random(8, 4)), aligned(random(4, 8))
    for _ in range(2):
        tensorplay.mm(a, b)
        with pytest.raises(ShapeError, match=r"\(8, 4\) and \(8, 4\)"):
            tensorplay.mm(a, a)
        with pytest.raises(ShapeError, match=r"out is \(4, 8\)"):
            tensorplay.mm(a, b, out=b)
        with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
            tensorplay.mm(a, FakeTensor(b.host, 1))
        with pytest.raises(OperandError, match=r"numpy\.ndarray on the host"):
            tensorplay.mm(a, b.host)
        with pytest.raises(OperandError, match="list on the host"):
            tensorplay.mm(a, [[1.0]])


def test_a_winner_that_fails_on_the_hot_path_falls_back(torch: Any, context: TuningContext, backend: Any) -> None:
    a, b = aligned(random(8, 4)), aligned(random(4, 8))
    for _ in range(2):
        tensorplay.mm(a, b)
    backend.broken = {backend.launches[-1][1]}
    close(tensorplay.mm(a, b), a.host @ b.host)
    assert context.stats()["fallback"] == 1
    close(tensorplay.mm(a, b), a.host @ b.host)


def test_nothing_is_remembered_that_is_not_settled(torch: Any, context: TuningContext, backend: Any) -> None:
    context.tuning_disable()
    a, b = aligned(random(8, 4)), aligned(random(4, 8))
    for _ in range(3):
        tensorplay.mm(a, b)
        tensorplay.linear(a, aligned(random(8, 4)))
    assert context.plans == {}
    backend.is_capture_live = True
    tensorplay.mm(a, b)
    assert directs(context) == 1


def test_a_changed_setting_is_heeded_by_the_next_call(torch: Any, context: TuningContext) -> None:
    a, b = aligned(random(8, 4)), aligned(random(4, 8))
    for _ in range(3):
        tensorplay.mm(a, b)
    context.disable()
    tensorplay.mm(a, b)
    assert context.stats()["selected_in_process"] == 1


@pytest.mark.parametrize("leading", [(3,), (2, 3), (), (0, 3)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_has_a_hot_path_of_its_own(
    torch: Any, context: TuningContext, leading: tuple[int, ...], with_bias: bool
) -> None:
    x, weight, bias = aligned(random(*leading, 8)), aligned(random(4, 8)), aligned(random(4))
    expected = x.host @ weight.host.T + (bias.host if with_bias else 0)
    for _ in range(3):
        found = tensorplay.linear(x, weight, bias if with_bias else None)
        assert found.shape == (*leading, 4)
        close(found, expected)
    assert directs(context) == (0 if 0 in leading else 1)
