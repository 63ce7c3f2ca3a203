"""Hits of torch's tensors on a real device, in C where the extension was built: values, streams, graphs, refusals."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorplay as package
from tensorplay.backends.cublaslt.launch import launch_of, maker
from tensorplay.backends.cublaslt.offers import first_algorithm
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.errors import LaunchError, OperandError
from tensorplay.extensions import extension
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.ops.device.torch_shortcut import torch_shortcut
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.plans import TABLE
from tensorplay.runtime.process import use_context

# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("context")]

ON = {
    "TP_TUNABLEOP_ENABLED": "1",
    "TP_TUNABLEOP_CANDIDATES": "heuristic",
    "TP_TUNABLEOP_FAMILIES": "all",
    "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "5",
}
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-13, "complex64": 1e-5}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[TuningContext]:
    with use_context(TuningContext(environ=ON, directory=tmp_path)) as context:
        yield context
        context.close()


@pytest.fixture
def known(torch: Any, context: TuningContext) -> tuple[Any, Any, Any]:
    """Return operands whose layout is known, with a result and without one."""
    del context
    a, b, out = (torch.rand(shape, device="cuda") for shape in ((48, 64), (64, 32), (48, 32)))
    for _ in range(3):
        tensorplay.mm(a, b, out=out)
        tensorplay.mm(a, b)
    return a, b, out


def in_c() -> None:
    """Skip where hits are not in C."""
    if extension("tensorplay.ops.device._direct") is None or not hasattr(torch_shortcut().mm, "add"):
        pytest.skip("hits are not in C here: no extension, or a torch without functions for it")


def error_of(found: Any, a: Any, b: Any) -> float:
    """Return the largest error against the product in twice the precision."""
    expected = a.cdouble() @ b.cdouble() if a.is_complex() else a.double() @ b.double()
    return float((found.to(expected.dtype) - expected).abs().max().item())


@pytest.mark.parametrize("name", list(TOLERANCE))
def test_hits_are_right_for_tensors_that_come_and_go(torch: Any, name: str) -> None:
    dtype = getattr(torch, name)
    for turn in range(8):
        a, b = (torch.rand(shape, device="cuda").to(dtype) for shape in ((33, 64), (64, 40)))
        out = torch.empty(33, 40, device="cuda", dtype=dtype)
        assert tensorplay.mm(a, b, out=out) is out
        for found in (out, tensorplay.mm(a, b)):
            assert error_of(found, a, b) < 64 * TOLERANCE[name], f"call {turn}"


def test_hits_are_taken_in_c_and_counted(known: tuple[Any, Any, Any], context: TuningContext) -> None:
    in_c()
    a, b, out = known
    table: Any = context.plans[TABLE]
    assert len(table) == 2
    before = context.stats()["replayed"]
    for _ in range(10):
        tensorplay.mm(a, b, out=out)
        tensorplay.mm(a, b)
    assert context.stats()["replayed"] == before + 20
    assert maker() is None or any(type(each.launch) is maker() for each in _directs(context))


def test_a_hit_runs_on_torch_s_current_stream(torch: Any, known: tuple[Any, Any, Any]) -> None:
    a, b, _ = known
    stream = torch.cuda.Stream()
    out = torch.zeros(48, 32, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        # The product must come behind this, and in front of the copy.
        torch.cuda._sleep(20_000_000)
        tensorplay.mm(a, b, out=out)
        copy = out.clone()
    stream.synchronize()
    assert error_of(copy, a, b) < 1e-3


def test_a_captured_hit_gives_the_bits_of_the_eager_one(torch: Any, known: tuple[Any, Any, Any]) -> None:
    a, b, out = known
    tensorplay.mm(a, b, out=out)
    eager = out.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensorplay.mm(a, b, out=out)
    for _ in range(3):
        out.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, eager)
    tensorplay.mm(a, b, out=out)
    assert torch.equal(out, eager)


def test_lazy_views_of_known_memory_are_not_taken_for_it(torch: Any, known: tuple[Any, Any, Any]) -> None:
    a, b, out = known
    for _ in range(4):
        tensorplay.mm(a, b, out=out)
    negated = torch._neg_view(a)
    assert negated.data_ptr() == a.data_ptr()
    assert error_of(tensorplay.mm(negated, b, out=out), -a, b) < 1e-3
    left, right = (torch.rand(16, 16, device="cuda", dtype=torch.complex64) for _ in range(2))
    for _ in range(4):
        tensorplay.mm(left, right)
    assert error_of(tensorplay.mm(left.conj(), right), left.conj().resolve_conj(), right) < 1e-3


def test_a_gradient_is_not_lost_on_the_hot_path(torch: Any, known: tuple[Any, Any, Any]) -> None:
    a, b, out = known
    weight = torch.nn.Parameter(b)
    for tensors in ((a, weight), (a.clone().requires_grad_(), b)):
        with pytest.raises(OperandError, match=r"torch\.no_grad"):
            tensorplay.mm(*tensors, out=out)
        with torch.no_grad():
            assert error_of(tensorplay.mm(*tensors, out=out), a, b.detach()) < 1e-3


def test_a_backward_over_what_a_hit_has_overwritten_is_refused(torch: Any, known: tuple[Any, Any, Any]) -> None:
    a, b, out = known
    leaf = torch.rand(48, 32, device="cuda", requires_grad=True)
    loss = (leaf * out).sum()
    tensorplay.mm(a, b, out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_tf32_is_allowed_and_forbidden_between_two_hits(torch: Any, known: tuple[Any, Any, Any]) -> None:
    a, b, out = known
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        for allowed in (False, True, True, False):
            torch.backends.cuda.matmul.allow_tf32 = allowed
            for _ in range(3):
                error = error_of(tensorplay.mm(a, b, out=out), a, b)
            assert (error > 1e-4) == allowed
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def test_a_launch_in_c_is_what_the_binding_does_and_is_refused_in_the_library_s_words(torch: Any) -> None:
    if maker() is None:
        pytest.skip("launches are not in C here")
    dtype = dtype_of_name("float32")
    assert dtype is not None
    operation = Operation(GemmProblem(dtype=dtype, m=16, n=24, k=32, device="0"))
    algorithm = first_algorithm(operation, ceiling=32 << 20)
    assert algorithm is not None
    a, b, out = (torch.rand(shape, device="cuda") for shape in ((16, 32), (32, 24), (16, 24)))
    launch = launch_of(operation, algorithm, algorithm.workspace_bytes, lambda *_: pytest.fail("this is the device"))
    assert launch is not None
    launch(a.data_ptr(), b.data_ptr(), out.data_ptr(), torch.cuda.current_stream().cuda_stream)
    assert error_of(out, a, b) < 1e-3
    nonsense = (ctypes.c_uint8 * 64)(*range(200, 264))

    class Invented:
        kernel_id, address, workspace_bytes = "invented", ctypes.addressof(nonsense), 0

    refused = launch_of(operation, Invented, 0, lambda *_: None)  # type: ignore[arg-type]  # it has what is read of one
    assert refused is not None
    with pytest.raises(LaunchError, match=r"invented did not launch: \w+"):
        refused(a.data_ptr(), b.data_ptr(), out.data_ptr(), 0)


def _directs(context: TuningContext) -> list[Any]:
    return [each for each in context.plans.values() if hasattr(each, "launch")]
