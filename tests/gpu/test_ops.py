"""Products of torch's tensors on a real device: values, streams, capture, gradients, several devices."""

import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorplay as package
from tensorplay.errors import OperandError
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
]

ON = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_CANDIDATES": "heuristic", "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "5"}
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-13, "complex64": 1e-5}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[TuningContext]:
    with use_context(TuningContext(environ=ON, directory=tmp_path)) as context:
        yield context
        context.close()


def error_of(found: Any, expected: Any, k: int) -> float:
    """Return the largest error against float64, in units of what k products of numbers up to 1 add up to."""
    difference = (found.to(expected.dtype) - expected).abs().max().item() if found.numel() else 0.0
    return float(difference / math.sqrt(max(k, 1)))


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("name", list(TOLERANCE))
def test_random_problems_are_right(torch: Any, name: str) -> None:
    rng = np.random.default_rng(0)
    dtype = getattr(torch, name)
    wide = torch.complex128 if dtype.is_complex else torch.float64

    def operand(rows: int, columns: int) -> Any:
        turned, gap = rng.random() < 0.5, int(rng.integers(0, 2) * rng.integers(1, 9))
        rows, columns = (columns, rows) if turned else (rows, columns)
        array = (torch.rand(rows, columns + gap, device="cuda", dtype=torch.float64) * 2 - 1).to(dtype)[:, gap:]
        return array.t() if turned else array

    for _ in range(40):
        m, n, k = (int(size) for size in rng.choice([1, 2, 3, 7, 16, 33, 64, 129, 256], 3))
        a, b = operand(m, k), operand(k, n)
        expected = a.to(wide) @ b.to(wide)
        for _ in range(2):
            assert error_of(tensorplay.mm(a, b), expected, k) < TOLERANCE[name], (m, n, k)
        out = operand(m, n)
        assert tensorplay.mm(a, b, out=out) is out
        assert error_of(out, expected, k) < TOLERANCE[name], (m, n, k)
        bias, c = operand(1, n)[0], operand(m, n)
        found = tensorplay.addmm(bias, a, b, alpha=0.5)
        assert error_of(found, 0.5 * expected + bias.to(wide), k) < TOLERANCE[name], (m, n, k)
        found = tensorplay.addmm(c, a, b, beta=-2)
        assert error_of(found, expected - 2 * c.to(wide), k) < 3 * TOLERANCE[name], (m, n, k)
        found = tensorplay.linear(a, b.t(), bias)
        assert error_of(found, expected + bias.to(wide), k) < TOLERANCE[name], (m, n, k)


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("name", ["float16", "float32"])
def test_stacks_are_right(torch: Any, name: str) -> None:
    dtype = getattr(torch, name)
    a, b = (torch.rand(shape, device="cuda", dtype=torch.float64).to(dtype) for shape in ((4, 6, 5, 7), (4, 6, 7, 3)))
    expected = a.double() @ b.double()
    for left, right in ((a, b), (a.transpose(0, 1).contiguous().transpose(0, 1), b)):
        assert error_of(tensorplay.matmul(left, right), expected, 7) < TOLERANCE[name]
    assert error_of(tensorplay.matmul(a, b[0, 0]), a.double() @ b[0, 0].double(), 7) < TOLERANCE[name]
    assert error_of(tensorplay.bmm(a[0], b[0]), expected[0], 7) < TOLERANCE[name]


@pytest.mark.usefixtures("context")
def test_misaligned_and_odd_views_are_right(torch: Any) -> None:
    memory = torch.rand(4097, device="cuda", dtype=torch.float32)
    for start in (0, 1, 2, 4):
        a = memory[start : start + 1024].view(32, 32)
        for left, right in ((a, a), (a.t(), a), (a[::2, ::2], a[::2, ::2]), (a.flip(0), a[:, :1].expand(32, 32))):
            found = tensorplay.mm(left, right)
            assert error_of(found, left.double() @ right.double(), 32) < TOLERANCE["float32"]
    half = torch.rand(1025, device="cuda").to(torch.float16)[1:].view(32, 32)
    assert error_of(tensorplay.mm(half, half), half.double() @ half.double(), 32) < TOLERANCE["float16"]


def test_the_hot_path_is_taken_and_replays_the_same_bits(torch: Any, context: TuningContext) -> None:
    a, b = torch.rand(64, 32, device="cuda"), torch.rand(32, 48, device="cuda")
    out = torch.empty(64, 48, device="cuda")
    first = tensorplay.mm(a, b, out=out).clone()
    for _ in range(3):
        assert torch.equal(tensorplay.mm(a, b, out=out), first)
        assert torch.equal(tensorplay.mm(a, b), first)
    assert any(isinstance(each, Direct) for each in context.plans.values())
    assert type(next(each for each in context.plans.values() if isinstance(each, Direct)).check).__name__ != "function"


@pytest.mark.usefixtures("context")
def test_the_current_stream_is_used(torch: Any) -> None:
    a = torch.rand(2048, 2048, device="cuda")
    expected = a.double() @ a.double()
    stream = torch.cuda.Stream()
    for _ in range(3):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            delayed = a.clone()
            torch.cuda._sleep(10_000_000)
            delayed.copy_(a)
            found = tensorplay.mm(delayed, a)
        stream.synchronize()
        assert error_of(found, expected, 2048) < TOLERANCE["float32"] * 10


@pytest.mark.parametrize("is_known", [True, False])
def test_a_captured_product_replays_the_eager_bits(torch: Any, context: TuningContext, is_known: bool) -> None:
    a, b = torch.rand(96, 64, device="cuda"), torch.rand(64, 80, device="cuda")
    out = torch.empty(96, 80, device="cuda")
    warm = torch.rand(16, 16, device="cuda")
    tensorplay.mm(warm, warm)
    if is_known:
        tensorplay.mm(a, b, out=out)
    measured = context.stats()["measured"]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensorplay.mm(a, b, out=out)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    replayed = out.clone()
    assert error_of(replayed, a.double() @ b.double(), 64) < TOLERANCE["float32"]
    assert torch.equal(tensorplay.mm(a, b, out=out), replayed)
    assert context.stats()["measured"] == measured
    assert context.stats()["pinned"] == (0 if is_known else 1)


def test_with_the_feature_off_a_graph_has_the_bits_of_the_eager_call_before_it(torch: Any, tmp_path: Path) -> None:
    # Split along k in different ways, the library's choices differ in the last bits.
    a, b = torch.rand(64, 4096, device="cuda"), torch.rand(4096, 96, device="cuda")
    out = torch.empty(64, 96, device="cuda")
    with use_context(TuningContext(environ={}, directory=tmp_path)) as off:
        eager = tensorplay.mm(a, b, out=out).clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            tensorplay.mm(a, b, out=out)
        out.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, eager)
        assert torch.equal(tensorplay.mm(a, b, out=out), eager)
        assert off.stats()["selected_in_process"] == 3
        assert off.get_results() == []
        off.close()


@pytest.mark.usefixtures("context")
def test_tf32_has_results_of_its_own(torch: Any, context: TuningContext) -> None:
    a = torch.rand(64, 64, device="cuda")
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        for allowed in (False, True, False):
            torch.backends.cuda.matmul.allow_tf32 = allowed
            tensorplay.mm(a, a)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    assert {op for op, *_ in context.get_results()} == {"GemmTunableOp_Float32", "GemmTunableOp_Tf32"}


@pytest.mark.usefixtures("context")
def test_a_gradient_that_would_be_lost_is_refused(torch: Any) -> None:
    x, layer = torch.rand(4, 8, device="cuda"), torch.nn.Linear(8, 16, device="cuda")
    with torch.no_grad():
        for _ in range(3):
            found = tensorplay.linear(x, layer.weight, layer.bias)
            assert torch.allclose(found, layer(x), atol=1e-5)
    with pytest.raises(OperandError, match="no_grad"):
        tensorplay.linear(x, layer.weight, layer.bias)


@pytest.mark.usefixtures("context")
def test_fp8_multiplies_a_transposed_weight(torch: Any) -> None:
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("this device has no FP8")
    a, w = (torch.rand(shape, device="cuda").to(torch.float8_e4m3fn) for shape in ((32, 64), (48, 64)))
    found = tensorplay.mm(a, w.t())
    assert found.dtype == torch.bfloat16
    assert error_of(found, a.double() @ w.double().t(), 64) < 2e-2 * 8


@pytest.mark.usefixtures("context")
def test_two_devices_do_not_mix_and_each_is_used_where_it_is(torch: Any) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one device")
    a, b = torch.rand(16, 16, device="cuda:0"), torch.rand(16, 16, device="cuda:1")
    with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
        tensorplay.mm(a, b)
    for _ in range(3):
        found = tensorplay.mm(b, b)
        assert found.device == b.device
        assert error_of(found, b.double() @ b.double(), 16) < TOLERANCE["float32"]
        assert torch.cuda.current_device() == 0


def test_a_thread_that_has_used_no_device_yet_takes_the_hot_path(torch: Any, context: TuningContext) -> None:
    a, b = torch.randn(64, 96, device="cuda"), torch.randn(96, 32, device="cuda")
    out = torch.empty(64, 32, device="cuda")
    for _ in range(3):
        tensorplay.mm(a, b, out=out)
    expected = out.clone()
    out.zero_()
    torch.cuda.synchronize()
    raised: list[BaseException] = []

    def work() -> None:
        try:
            tensorplay.mm(a, b, out=out)
        except BaseException as error:  # noqa: BLE001 - the thread that asserts is another
            raised.append(error)

    calls = context.stats()["replayed"] + context.stats()["first_choice"]
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert raised == []
    assert torch.equal(out, expected)
    assert context.stats()["replayed"] + context.stats()["first_choice"] == calls + 1
    assert context.stats()["rejected"] == context.stats()["fallback"] == 0
