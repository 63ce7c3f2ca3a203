"""Measuring in the background on a real device: when it is idle, beside captures, and without a call noticing."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorplay as package
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.clocks import clocks
from tensorplay.backends.cublaslt.idle import is_idle, note_call
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = pytest.mark.filterwarnings("ignore")

LATER = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MODE": "background", "TP_TUNABLEOP_CANDIDATES": "heuristic"}
LONG = 120.0


@pytest.fixture
def context(tmp_path: Path) -> Iterator[TuningContext]:
    with use_context(TuningContext(environ=LATER, directory=tmp_path)) as context:
        yield context
        context.close()


def operands(torch: Any, m: int, n: int = 256, k: int = 512) -> tuple[Any, Any, Any, Any]:
    a, b = torch.rand(m, k, device="cuda") - 0.5, torch.rand(k, n, device="cuda") - 0.5
    out = torch.empty(m, n, device="cuda")
    return a, b, out, (a.double() @ b.double()).float()


def close(torch: Any, found: Any, expected: Any) -> None:
    torch.cuda.synchronize()
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)


def test_the_backend_s_answers_are_those_of_its_modules(backend: CublasLtBackend, torch: Any) -> None:
    torch.cuda.synchronize()
    assert backend.is_idle("0")
    assert backend.clocks("0") == clocks(0) or clocks(0) is not None
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
    backend.note_call("0", stream.cuda_stream)
    assert not backend.is_idle("0")
    torch.cuda.synchronize()
    assert backend.is_idle("0")


@pytest.mark.parametrize("is_own_stream", [False, True])
def test_a_device_is_idle_when_the_noted_work_is_done(torch: Any, is_own_stream: bool) -> None:
    stream = torch.cuda.Stream() if is_own_stream else torch.cuda.default_stream()
    torch.cuda.synchronize()
    assert is_idle(0)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        note_call(0, stream.cuda_stream)
    answers: list[bool] = []
    # The worker's thread has no current context of its own.
    thread = threading.Thread(target=lambda: answers.append(is_idle(0)))
    thread.start()
    thread.join()
    assert answers == [False]
    torch.cuda.synchronize()
    assert is_idle(0)


def test_streams_that_are_gone_are_asked_nothing(torch: Any) -> None:
    from tensorplay.backends.cublaslt.library import driver
    from tensorplay.backends.cublaslt.status import check

    torch.zeros(1, device="cuda")
    for _ in range(200):
        stream = int(check(driver().cuStreamCreate(1), "creating a stream"))
        note_call(0, stream)
        check(driver().cuStreamDestroy(stream), "destroying a stream")
    torch.cuda.synchronize()
    assert is_idle(0)


def test_asking_whether_a_device_is_idle_leaves_a_capture_elsewhere_valid(torch: Any) -> None:
    kept = torch.zeros(64, device="cuda")
    note_call(0, torch.cuda.current_stream().cuda_stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="global"):
        kept.add_(1.0)
        thread = threading.Thread(target=lambda: [is_idle(0) for _ in range(50)])
        thread.start()
        thread.join()
        kept.add_(1.0)
    graph.replay()
    torch.cuda.synchronize()
    assert kept.tolist() == [2.0] * 64


def test_clocks_are_megahertz_where_they_can_be_read() -> None:
    found = clocks(0)
    assert found is None or (
        set(found) == {"graphics", "sm", "memory"} and all(0 < mhz < 20_000 for mhz in found.values())
    )


def test_the_first_choice_runs_at_once_and_the_winner_comes_later(
    torch: Any, context: TuningContext, tmp_path: Path
) -> None:
    tensors = [operands(torch, m) for m in (8, 64, 200)]
    for _ in range(3):
        for a, b, out, expected in tensors:
            close(torch, tensorplay.mm(a, b, out=out), expected)
            close(torch, tensorplay.mm(a, b), expected)
    assert context.stats()["measured"] == 0 or context.stats()["queued"] == 3
    assert context.drain(LONG)
    for a, b, out, expected in tensors:
        close(torch, tensorplay.mm(a, b, out=out), expected)
        close(torch, tensorplay.mm(a, b), expected)
    stats = context.stats()
    assert (stats["queued"], stats["measured"], stats["waiting"]) == (3, 3, 0)
    assert stats["replayed"] >= 6
    assert len((tmp_path / "tunableop_results0.explain.jsonl").read_text().splitlines()) == 3


def test_what_waits_is_on_the_hot_path_and_every_call_is_counted(torch: Any, context: TuningContext) -> None:
    a, b, out, expected = operands(torch, 96)
    torch.cuda._sleep(400_000_000)
    for _ in range(50):
        tensorplay.mm(a, b, out=out)
    assert any(isinstance(each, Direct) for each in context.plans.values())
    counted = context.stats()
    assert counted["first_choice"] + counted["replayed"] == 50
    close(torch, out, expected)
    assert context.drain(LONG)


def test_nothing_is_measured_while_the_callers_work_runs(torch: Any, context: TuningContext) -> None:
    a, b, out, expected = operands(torch, 48)
    torch.cuda._sleep(1_500_000_000)
    tensorplay.mm(a, b, out=out)
    assert not context.drain(0.3)
    assert context.stats()["measuring"] == 0
    close(torch, out, expected)
    assert context.drain(LONG)
    assert context.stats()["measured"] == 1


def test_a_capture_that_begins_while_it_measures_stays_valid_and_pins(torch: Any, context: TuningContext) -> None:
    captured = operands(torch, 80)
    waiting = [operands(torch, m) for m in (16, 32, 160, 320)]
    tensorplay.mm(*captured[:2], out=captured[2])
    context.drain(LONG)
    for a, b, out, _ in waiting:
        tensorplay.mm(a, b, out=out)
    torch.cuda.synchronize()
    deadline = time.monotonic() + LONG
    while context.stats()["measuring"] == 0 and context.stats()["measured"] < 2 and time.monotonic() < deadline:
        time.sleep(0.0005)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="global"):
        for a, b, out, _ in (captured, *waiting):
            tensorplay.mm(a, b, out=out)
    # What ran under the capture is what eager calls run from now on, whatever is found meanwhile.
    assert context.drain(LONG)
    for _, _, out, _ in (captured, *waiting):
        out.zero_()
    graph.replay()
    for _, _, out, expected in (captured, *waiting):
        close(torch, out, expected)
    for a, b, out, _ in (captured, *waiting):
        replayed = out.clone()
        assert torch.equal(tensorplay.mm(a, b, out=out), replayed)
    stats = context.stats()
    assert stats["rejected"] == stats["fallback"] == 0


def test_captures_one_after_another_are_never_disturbed(torch: Any, context: TuningContext) -> None:
    kept = torch.zeros(16, device="cuda")
    for turn in range(30):
        a, b, out, expected = operands(torch, 8 * (turn + 1))
        tensorplay.mm(a, b, out=out)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="global"):
            kept.add_(1.0)
            time.sleep(0.005)
            kept.add_(1.0)
        graph.replay()
        close(torch, out, expected)
    torch.cuda.synchronize()
    assert kept.tolist() == [60.0] * 16
    assert context.drain(LONG)
    assert (context.stats()["queued"], context.stats()["measured"]) == (30, 30)
