"""Several devices in one process: each has its own file, stream, workspace and kernels, whichever is current."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorplay as package
from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt import library
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.device import current, device, device_count
from tensorplay.cuda import asarray
from tensorplay.errors import OperandError
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.measure.numerics import agree
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        library.available() is not None or device_count() < 2, reason="there are no two devices to tell apart"
    ),
]

ON = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_CANDIDATES": "heuristic", "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "5"}
TYPES = {"float32": 1e-4, "float64": 1e-12, "float16": 2e-2, "bfloat16": 0.15, "complex64": 1e-4}


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="1"), **further)


@pytest.fixture(params=["off", "plan", "all"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TuningContext]:
    environ = {} if request.param == "off" else ON | {"TP_TUNABLEOP_FAMILIES": request.param}
    with use_context(TuningContext(environ=environ, directory=tmp_path)) as context:
        yield context
        context.close()


@pytest.fixture
def tuned(tmp_path: Path) -> Iterator[TuningContext]:
    with use_context(TuningContext(environ=ON, directory=tmp_path)) as context:
        yield context
        context.close()


def check_products(torch: Any, ordinal: int, name: str, tolerance: float) -> None:
    place, dtype = f"cuda:{ordinal}", getattr(torch, name)
    wide = torch.complex128 if dtype.is_complex else torch.float64

    def made(*shape: int) -> Any:
        return torch.randn(shape, device=place, dtype=wide).to(dtype)

    def check(found: Any, expected: Any) -> None:
        assert found.device == torch.device(place)
        torch.testing.assert_close(found.to(wide), expected, atol=tolerance, rtol=tolerance)

    for m, n, k in ((33, 40, 24), (1, 64, 48), (64, 1, 48)):
        a, b, bias, c = made(m, k), made(k, n), made(n), made(m, n)
        exact = a.to(wide) @ b.to(wide)
        for _ in range(3):
            check(tensorplay.mm(a, b), exact)
        out = made(m, n)
        assert tensorplay.mm(a, b, out=out) is out
        check(out, exact)
        check(tensorplay.addmm(c, a, b, beta=0.5), exact + 0.5 * c.to(wide))
        check(tensorplay.linear(a, b.t().contiguous(), bias), exact + bias.to(wide))
    left, right = made(3, 17, 24), made(3, 24, 16)
    check(tensorplay.bmm(left, right), left.to(wide) @ right.to(wide))


@pytest.mark.parametrize("name", list(TYPES))
@pytest.mark.usefixtures("context")
def test_operands_on_another_device_than_the_current_one_are_multiplied_there(torch: Any, name: str) -> None:
    for now in (0, 1):
        with torch.cuda.device(now):
            for ordinal in (1, 0):
                check_products(torch, ordinal, name, TYPES[name])
                assert torch.cuda.current_device() == now


def test_each_device_has_its_own_file_and_replays_it(torch: Any, tmp_path: Path) -> None:
    pairs = [[torch.rand(96, 96, device=f"cuda:{ordinal}") for _ in range(2)] for ordinal in (0, 1)]
    first: list[Any] = []
    for turn in range(2):
        with use_context(TuningContext(environ=ON, directory=tmp_path)) as context:
            found = [tensorplay.mm(a, b) for a, b in pairs]
            assert context.stats()["measured"] == (0 if turn else 2)
            context.close()
        for each, (a, b) in zip(found, pairs, strict=True):
            torch.testing.assert_close(each.double(), a.double() @ b.double(), atol=1e-4, rtol=1e-4)
        assert not first or all(map(torch.equal, found, first))
        first = found
    for ordinal in (0, 1):
        lines = (tmp_path / f"tunableop_results{ordinal}.csv").read_text().splitlines()
        winners = [line for line in lines if line.startswith("Gemm")]
        assert len(winners) == 1
        assert f"_dev{ordinal}," in winners[0]


def test_each_device_has_its_own_validators(backend: CublasLtBackend) -> None:
    for ordinal in (0, 1):
        here = device(ordinal)
        facts = dict(backend.validators(str(ordinal)))
        assert facts["CUDA_DEVICE"] == f"{here.capability[0]}.{here.capability[1]}:{here.name}"


@pytest.mark.usefixtures("tuned")
def test_operands_on_different_devices_are_refused(torch: Any) -> None:
    a, b = torch.rand(16, 16, device="cuda:0"), torch.rand(16, 16, device="cuda:1")
    calls: list[Callable[[], object]] = [
        lambda: tensorplay.mm(a, b),
        lambda: tensorplay.mm(b, b, out=torch.empty_like(a)),
        lambda: tensorplay.addmm(a[0], b, b),
        lambda: tensorplay.addmm(a, b, b),
        lambda: tensorplay.linear(b, b, a[0]),
        lambda: tensorplay.bmm(a[None], b[None]),
        lambda: tensorplay.mm(asarray(np.eye(4, dtype=np.float32), 0), asarray(np.eye(4, dtype=np.float32), 1)),
    ]
    for call in calls:
        with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
            call()


@pytest.mark.usefixtures("tuned")
def test_arrays_of_our_own_stay_on_their_device() -> None:
    host = np.random.default_rng(0).uniform(-1, 1, (40, 40)).astype(np.float32)
    for ordinal in (1, 0, 1):
        array = asarray(host, ordinal)
        found = tensorplay.mm(array, array)
        assert found.device == ordinal
        np.testing.assert_allclose(found.numpy(), host @ host, atol=1e-5)


@pytest.mark.usefixtures("tuned")
def test_streams_of_both_devices_are_kept_apart_and_in_order(torch: Any) -> None:
    streams = [torch.cuda.Stream(device=ordinal) for ordinal in (0, 1)]
    operands = [torch.rand(1024, 1024, device=f"cuda:{ordinal}") for ordinal in (0, 1)]
    for a in operands:
        tensorplay.mm(a, a)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    for _ in range(3):
        found = []
        for stream, a in zip(streams, operands, strict=True):
            with torch.cuda.stream(stream):
                delayed = torch.zeros_like(a)
                torch.cuda._sleep(20_000_000)
                delayed.copy_(a)
                found.append(tensorplay.mm(delayed, a))
        for stream, a, each in zip(streams, operands, found, strict=True):
            stream.synchronize()
            with torch.cuda.device(a.device):
                torch.testing.assert_close(each.double(), a.double() @ a.double(), atol=1e-2, rtol=1e-4)


@pytest.mark.usefixtures("tuned")
def test_a_current_stream_of_another_device_than_the_current_one_is_used(torch: Any) -> None:
    a = torch.rand(1024, 1024, device="cuda:1")
    tensorplay.mm(a, a)
    stream = torch.cuda.Stream(device=1)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        delayed = a.clone()
        # Device 0 is current again, but the stream of device 1 is still what it was set to.
        with torch.cuda.device(0):
            found = tensorplay.mm(delayed, a)
            assert torch.cuda.current_device() == 0
    stream.synchronize()
    torch.testing.assert_close(found.double(), a.double() @ a.double(), atol=1e-2, rtol=1e-4)


@pytest.mark.usefixtures("tuned")
def test_what_came_from_a_peer_is_multiplied_and_goes_back(torch: Any) -> None:
    for name in ("float32", "bfloat16"):
        there = torch.rand(512, 512, device="cuda:0").to(getattr(torch, name))
        exact = there.double() @ there.double()
        for _ in range(3):
            here = there.to("cuda:1", non_blocking=True)
            back = tensorplay.mm(here, here).to("cuda:0", non_blocking=True)
            torch.testing.assert_close(back.double(), exact, atol=2.0 if name == "bfloat16" else 1e-2, rtol=1e-2)


@pytest.mark.usefixtures("tuned")
def test_threads_on_both_devices_at_once_are_right(torch: Any) -> None:
    wrong: list[tuple[int, int]] = []
    done: list[int] = []

    def work(number: int) -> None:
        ordinal = number % 2
        # Some of the threads never say which device they work on.
        if number >= 2:
            torch.cuda.set_device(ordinal)
        generator = torch.Generator(device=f"cuda:{ordinal}").manual_seed(number)
        for turn in range(40):
            dtype = (torch.float32, torch.float16, torch.complex64)[turn % 3]
            size = 16 * (1 + (turn + number) % 5)
            a = torch.rand(size, size, device=f"cuda:{ordinal}", generator=generator).to(dtype)
            wide = torch.complex128 if dtype.is_complex else torch.float64
            difference = tensorplay.mm(a, a).to(wide) - a.to(wide) @ a.to(wide)
            if difference.abs().max().item() > 0.05:
                wrong.append((ordinal, turn))
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(6))
    assert not wrong


@pytest.mark.parametrize(
    "problem",
    [
        posed("float32", 65, 48, 97),
        posed("float64", 64, 64, 64, bias=True),
        posed("bfloat16", 4, 1024, 2048, transpose_right=True),
        posed("float16", 1, 512, 512),
        posed("complex64", 33, 17, 20, batch=3),
    ],
    ids=lambda problem: problem.dtype.name,
)
@pytest.mark.parametrize("now", [None, 0, 1])
def test_every_source_works_on_the_second_device(
    backend: CublasLtBackend, problem: GemmProblem, now: int | None
) -> None:
    def check() -> None:
        contexts.append(int(library.driver().cuCtxGetCurrent()[1]))
        plans = [backend.first_choice(problem), backend.fixed_dispatch(problem)]
        plans += list(backend.candidates(problem, CandidateQuery()))[-12:]
        with backend.open_trial(problem, rotating_bytes=1 << 20) as trial:
            for plan in plans:
                exact = trial.reference()
                verdict = agree(trial.output(plan), exact, trial.reference, dtype=problem.dtype, k=problem.k)
                if not verdict.ok:
                    wrong.append((signature_of(problem), plan.kernel, verdict.reason))
            trial.timer.warm_up(plans[0])
            assert min(trial.timer.sample([plans[0], plans[-1]])) > 0
        contexts.append(int(library.driver().cuCtxGetCurrent()[1]))

    wrong: list[object] = []
    contexts: list[int] = []
    if now is None:
        # A thread of its own has no current context, and is left with none.
        thread = threading.Thread(target=check)
        thread.start()
        thread.join()
    else:
        with current(now):
            check()
    assert len(contexts) == 2 and contexts[0] == contexts[1]
    assert not wrong


def test_a_graph_of_the_second_device_replays_the_eager_bits(torch: Any, tuned: TuningContext) -> None:
    a, b = torch.rand(96, 64, device="cuda:1"), torch.rand(64, 80, device="cuda:1")
    known, unknown = (torch.empty(96, 80, device="cuda:1") for _ in range(2))
    tensorplay.mm(a, b, out=known)
    eager, measured = known.clone(), tuned.stats()["measured"]
    transposed = b.t().contiguous()
    with torch.cuda.device(1):
        graph = torch.cuda.CUDAGraph()
        # A stream of this device: torch's default for captures is of the device that captured first.
        with torch.cuda.graph(graph, stream=torch.cuda.Stream(1)):
            tensorplay.mm(a, b, out=known)
            tensorplay.mm(a, transposed.t(), out=unknown)
    known.zero_()
    graph.replay()
    torch.cuda.synchronize(1)
    assert torch.equal(known, eager)
    torch.testing.assert_close(unknown.double(), a.double() @ b.double(), atol=1e-4, rtol=1e-4)
    assert tuned.stats()["measured"] == measured
    assert torch.equal(tensorplay.mm(a, transposed.t()), unknown)
    assert tuned.stats()["pinned"] >= 1
