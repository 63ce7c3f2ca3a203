"""Stand-ins for a device: its memory is the host's, its kernels read the addresses that they are given.

So whatever is wrong with an address, a stride or a leading dimension shows as a wrong value.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.base import Plan
from tensorplay.backends.cublaslt.number_types import bias_dtype
from tensorplay.backends.cublaslt.reference import activated
from tensorplay.backends.host.layout import Layout, left_layout, out_layout, right_layout
from tensorplay.database.record import Validator
from tensorplay.gemm import DType, GemmProblem
from tensorplay.ops.device import kinds
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context
from tensorplay.testing import ScriptedBackend, scripted_kernel

Array = NDArray[Any]


class PointerBackend(ScriptedBackend):
    """A backend whose plans take addresses, as the one for NVIDIA's devices does.

    Attributes
    ----------
    launches : list
        Problem, kernel and stream of each run.
    short : int
        How many of them came by a plan's `launch`.
    capability : str
        Of the device.
    """

    def __init__(self, device: str = "0") -> None:
        self.capability = "9.0"
        super().__init__({scripted_kernel(0): 2.0, scripted_kernel(1): 1.0}, device=device)
        self.launches: list[tuple[GemmProblem, str, int]] = []
        self.short = 0

    def validators(self, device: str) -> tuple[Validator, ...]:
        return (*super().validators(device), Validator("CUDA_DEVICE", f"{self.capability}:a fake GPU"))

    def library_choices(self, problem: GemmProblem) -> list[Plan]:
        return [self.first_choice(problem)]

    def _plan(self, problem: GemmProblem, kernel: str) -> Plan:
        trial = super()._plan(problem, kernel)

        def run(left: Any, right: Any, out: Any = 0, c: int = 0, bias: int = 0, *more: Any) -> Any:
            if not isinstance(left, int):
                return trial.run(left, right, out or None)
            alpha, beta, stream, *scales = more
            if kernel in self.broken:
                return trial.run(None, None)
            self.launches.append((problem, kernel, stream))
            _multiply(problem, (left, right, out, c or out, bias), alpha, beta, scales)
            return out

        def launch(left: int, right: int, out: int, stream: int) -> None:
            self.short += 1
            run(left, right, out, 0, 0, 1.0, 0.0, stream)

        return Plan(problem, kernel, run, launch=None if problem.bias else launch)


def _multiply(
    problem: GemmProblem, pointers: tuple[int, ...], alpha: Any, beta: Any, scales: Sequence[int] = ()
) -> None:
    left, right, out, c, bias = pointers
    assert all(pointer % problem.alignment == 0 for pointer in pointers)
    assert problem.accumulate or beta == 0
    assert problem.bias == (bias != 0)
    result = _at(out, out_layout(problem), problem.result_type)
    wide = np.complex128 if problem.dtype.is_complex else np.float64
    product = alpha * (
        _at(left, left_layout(problem), problem.left_type).astype(wide)
        @ _at(right, right_layout(problem), problem.dtype).astype(wide)
    )
    of_left, of_right, of_out = [_number(scale) for scale in scales] or (1.0, 1.0, 1.0)
    product = product * (of_left * of_right)
    if beta:
        product = product + beta * _at(c, out_layout(problem), problem.result_type)
    if bias:
        row = Layout(1, 1, problem.n, problem.n, problem.n)
        product = product + _at(bias, row, bias_dtype(problem.dtype, problem.result_type))[0].astype(wide)
    result[...] = (activated(product, problem.activation) * of_out).astype(result.dtype)


def _number(pointer: int) -> float:
    return ctypes.c_float.from_address(pointer).value if pointer else 1.0


def _at(pointer: int, layout: Layout, of: DType) -> Array:
    dtype = np.dtype("float32" if of.name == "tf32" else of.name)
    item = dtype.itemsize
    memory = memoryview((ctypes.c_char * (layout.elements * item)).from_address(pointer))
    steps = (layout.stride * item, layout.ld * item, item)
    stack: Array = np.ndarray((layout.batch, layout.rows, layout.columns), dtype, memory, strides=steps)
    stack = stack.swapaxes(1, 2) if layout.transposed else stack
    return stack if layout.batch > 1 else stack[0]


class FakeDevice:
    """As `cupy.cuda.Device`; new arrays are on the one that was entered last."""

    entered: ClassVar[list[int]] = [0]

    def __init__(self, ordinal: int) -> None:
        self.id = ordinal

    def __enter__(self) -> Self:
        self.entered.append(self.id)
        return self

    def __exit__(self, *_: object) -> None:
        self.entered.pop()


class FakeCupyArray:
    """As `cupy.ndarray`, in host memory."""

    def __init__(self, host: Array, device: int | None = None) -> None:
        self.host = host
        self.shape, self.strides, self.dtype, self.ndim = host.shape, host.strides, host.dtype, host.ndim
        self.data = SimpleNamespace(ptr=host.ctypes.data)
        self.device = FakeDevice(FakeDevice.entered[-1] if device is None else device)

    def __setitem__(self, where: Any, value: "FakeCupyArray") -> None:
        self.host[where] = value.host


FakeCupyArray.__module__ = "cupy"


def _aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.full(size + 256, 0xFF, np.uint8)
    start = -memory.ctypes.data % 256
    array: Array = memory[start : start + size].view(dtype).reshape(shape)
    return array


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what puts a host array, strides and all, on a fake device of a fake CuPy."""
    module: Any = ModuleType("cupy")
    module.ndarray = FakeCupyArray
    module.empty = lambda shape, dtype: FakeCupyArray(_aligned(shape, dtype))
    module.zeros = lambda shape, dtype: FakeCupyArray(np.zeros(shape, dtype))
    module.broadcast_to = lambda array, shape: FakeCupyArray(np.broadcast_to(array.host, shape))

    def copied(array: FakeCupyArray, order: str, *, copy: bool) -> FakeCupyArray:
        made = _aligned(array.shape, array.dtype)
        made[...] = array.host
        return FakeCupyArray(made)

    module.array = copied
    module.cuda = SimpleNamespace(get_current_stream=lambda device: SimpleNamespace(ptr=0x50 + device))
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(kinds, "_by_type", {})
    return FakeCupyArray


@pytest.fixture
def aligned() -> Callable[..., Array]:
    """Return what makes host memory as aligned as a device's."""
    return _aligned


@pytest.fixture
def backend() -> PointerBackend:
    """The backend of device 0."""
    return PointerBackend()


@pytest.fixture
def context(backend: PointerBackend, tmp_path: Path) -> Iterator[TuningContext]:
    """The process's context for one test, with the feature on and the fake device's backend."""
    environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FAMILIES": "all"}
    made = TuningContext(environ=environ, directory=tmp_path, backends={"0": backend, "1": PointerBackend("1")})
    with use_context(made) as context:
        yield context
        context.close()
