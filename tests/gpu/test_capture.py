"""Graph capture: seen whoever began it, and no obstacle to what was resolved before."""

import threading
from typing import Any

import pytest

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.capture import LEGACY
from tensorplay.gemm import GemmProblem, dtype_of_name


def posed(m: int = 256) -> GemmProblem:
    dtype = dtype_of_name("float32")
    assert dtype is not None
    return GemmProblem(dtype=dtype, m=m, n=256, k=512, device="0")


def pointers(torch: Any, problem: GemmProblem) -> tuple[Any, list[int]]:
    shapes = ((problem.m, problem.k), (problem.k, problem.n), (problem.m, problem.n))
    tensors = [torch.randn(shape, device="cuda") for shape in shapes]
    return tensors, [tensor.data_ptr() for tensor in tensors]


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_capture_on_the_stream_of_the_call_is_seen_in_every_mode(
    backend: CublasLtBackend, torch: Any, mode: str
) -> None:
    torch.zeros(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    assert not backend.is_capturing(torch.cuda.current_stream().cuda_stream)
    with torch.cuda.graph(graph, capture_error_mode=mode):
        torch.zeros(1, device="cuda")
        assert backend.is_capturing(torch.cuda.current_stream().cuda_stream)
    assert not backend.is_capturing(torch.cuda.current_stream().cuda_stream)
    assert not backend.is_capturing(None)


def test_a_capture_on_a_blocking_stream_of_another_thread_is_seen(backend: CublasLtBackend, torch: Any) -> None:
    torch.zeros(1, device="cuda")
    from tensorplay.backends.cublaslt.library import driver
    from tensorplay.backends.cublaslt.status import check

    cuda = driver()
    stream = check(cuda.cuStreamCreate(0), "creating a blocking stream")
    check(cuda.cuStreamBeginCapture(stream, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED), "beginning")
    answers: list[bool] = []

    def ask() -> None:
        torch.cuda.set_device(0)
        answers.extend(backend.is_capturing(each) for each in (0, None, LEGACY))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    graph = check(cuda.cuStreamEndCapture(stream), "the capture is still valid")
    check(cuda.cuGraphDestroy(graph), "destroying")
    check(cuda.cuStreamDestroy(stream), "destroying")
    assert answers == [True, True, True]
    assert not backend.is_capturing(None)


def test_a_plan_resolved_before_is_captured_and_replays_to_the_same_bits(backend: CublasLtBackend, torch: Any) -> None:
    problem = posed()
    tensors, addresses = pointers(torch, problem)
    for plan in (backend.first_choice(problem), *backend.candidates(problem, CandidateQuery(breadth="heuristic"))):
        plan.run(*addresses, stream=torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        eager = tensors[2].clone()
        graph = torch.cuda.CUDAGraph()
        # Torch captures on a stream of its own, which has met no product before.
        with torch.cuda.graph(graph):
            plan.run(*addresses, stream=torch.cuda.current_stream().cuda_stream)
        for _ in range(3):
            tensors[2].zero_()
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(tensors[2], eager), plan.kernel
        plan.run(*addresses, stream=torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        assert torch.equal(tensors[2], eager)


def test_a_problem_first_met_under_capture_runs(backend: CublasLtBackend, torch: Any) -> None:
    backend.first_choice(posed(8))
    problem = posed(96)
    tensors, addresses = pointers(torch, problem)
    expected = (tensors[0].double() @ tensors[1].double()).float()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        here = torch.cuda.current_stream().cuda_stream
        assert backend.is_capturing(here)
        backend.first_choice(problem).run(*addresses, stream=here)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(tensors[2], expected, atol=1e-3, rtol=1e-3)


def test_measuring_in_one_thread_leaves_a_capture_in_another_valid(backend: CublasLtBackend, torch: Any) -> None:
    problem = posed(64)
    plan = backend.first_choice(problem)
    kept = torch.zeros(64, device="cuda")
    failures: list[BaseException] = []

    def measure() -> None:
        try:
            with backend.open_trial(problem, rotating_bytes=1 << 20) as trial:
                trial.timer.warm_up(plan)
                trial.timer.sample([plan, plan])
                trial.output(plan)
        except BaseException as error:  # noqa: BLE001 - the thread that asserts is another
            failures.append(error)

    # A first trial pays for loading kernels, which is no matter for a capture.
    measure()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="global"):
        kept.add_(1.0)
        thread = threading.Thread(target=measure)
        thread.start()
        thread.join()
        kept.add_(1.0)
    graph.replay()
    torch.cuda.synchronize()
    assert not failures
    assert kept.tolist() == [2.0] * 64
