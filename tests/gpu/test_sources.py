"""The sources of candidates beside cuBLASLt: what each offers, and that what it offers is right and comes back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorplay as package
from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.measure.numerics import agree
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
]
TYPES = ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128")
CLASSIC = CandidateQuery(sources=frozenset({"cublas"}))
ON = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "9"}
ONLY_CLASSIC = ON | {"TP_TUNABLEOP_SOURCES": "cublas"}


def posed(name: str, m: int = 65, n: int = 48, k: int = 97, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


def variants(name: str) -> Iterator[GemmProblem]:
    for right in (False, True):
        for left in (False, True):
            yield posed(name, transpose_right=right, transpose_left=left)
    yield posed(name, ld_left=112, ld_right=64, ld_out=56)
    yield posed(name, accumulate=True)
    yield posed(name, batch=3, accumulate=True, ld_out=56)
    yield posed(name, batch=5, stride_left=0, transpose_right=True)
    yield posed(name, 1, 1, 999)
    yield posed(name, 1, 4096, 512)
    yield posed(name, 3, 5, 7, alignment=max(4, posed(name).dtype.itemsize))
    yield posed(name, 256, 128, 4096, workspace_mib=1)
    if name in {"float16", "bfloat16"}:
        yield posed(name, out_dtype=dtype_of_name("float32"))
        yield posed(name, 16, 1024, 8192, transpose_right=True)


def sources_of(backend: CublasLtBackend, problem: GemmProblem, query: CandidateQuery) -> set[str]:
    return {plan.kernel.split("_")[0] for plan in backend.candidates(problem, query)}


@pytest.mark.parametrize("name", TYPES)
def test_the_classic_call_is_right_and_rebuilds_to_the_same_bits(backend: CublasLtBackend, name: str) -> None:
    again = CublasLtBackend()
    for problem in variants(name):
        (plan,) = backend.candidates(problem, CLASSIC)
        assert plan.kernel == "cublas"
        with backend.open_trial(problem, rotating_bytes=0) as trial:
            found = trial.output(plan)
            verdict = agree(found, trial.reference(), trial.reference, dtype=problem.dtype, k=problem.k)
            assert verdict.ok, (signature_of(problem), verdict.reason)
            rebuilt = again.rebuild(problem, "cublas")
            assert rebuilt.workspace_bytes == plan.workspace_bytes
            np.testing.assert_array_equal(trial.output(rebuilt), found)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("sizes", [(16, 1024, 8192), (64, 64, 65536), (1, 512, 32768), (8, 4096, 16384)])
def test_the_classic_candidate_rounds_a_half_result_once(
    backend: CublasLtBackend, name: str, sizes: tuple[int, int, int]
) -> None:
    problem = posed(name, *sizes, transpose_right=True)
    unit, k = problem.dtype.unit_roundoff, problem.k
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        found, exact = trial.output(backend.rebuild(problem, "cublas")), trial.reference()
    # What a float32 sum of k such products, itself some sqrt(k) / 3, may be off where each addition cuts off.
    summed = 2.0**-24 * (k / 8.0) * (k**0.5 + 16.0)
    assert np.all(np.abs(found - exact) <= 1.01 * unit * np.abs(exact) + summed)


def test_each_source_offers_for_its_own_problems(backend: CublasLtBackend) -> None:
    square, few = posed("float32", 256, 256, 256), posed("bfloat16", 4, 4096, 4096, transpose_right=True)
    everything = CandidateQuery()
    assert sources_of(backend, square, everything) == {"lt", "cublas"}
    assert sources_of(backend, few, everything) == {"lt", "cublas", "skinny"}
    assert sources_of(backend, few, replace(everything, breadth="search")) == {"lt", "cublas", "skinny"}
    assert sources_of(backend, few, replace(everything, breadth="heuristic")) == {"lt"}
    assert "cublas" not in sources_of(backend, few, replace(everything, deterministic=True))
    assert sources_of(backend, replace(square, bias=True), everything) == {"lt"}
    assert sources_of(backend, replace(square, activation="relu"), everything) == {"lt"}
    assert sources_of(backend, replace(few, workspace_mib=0), everything) <= {"lt", "skinny"}
    for name in backend.sources:
        query = CandidateQuery(sources=frozenset({name}))
        assert sources_of(backend, few, query) == {"lt" if name == "cublaslt" else name}


def test_neighbours_are_of_the_same_source_and_run(backend: CublasLtBackend) -> None:
    problem, query = posed("bfloat16", 4, 2048, 2048, transpose_right=True), CandidateQuery(breadth="search")
    first = backend.first_choice(problem)
    skinny = next(backend.candidates(problem, replace(query, sources=frozenset({"skinny"}))))
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        for plan in (first, skinny):
            found = [each for each in backend.neighbours(problem, plan, query) if isinstance(each, Plan)]
            assert {each.kernel.split("_")[0] for each in found} == {plan.kernel.split("_")[0]}
            assert plan.kernel not in {each.kernel for each in found}
            for each in found[:5]:
                verdict = agree(
                    trial.output(each), trial.reference(), trial.reference, dtype=problem.dtype, k=problem.k
                )
                assert verdict.ok, (each.kernel, verdict.reason)
            assert not list(backend.neighbours(problem, plan, CLASSIC))
    assert not list(backend.neighbours(problem, backend.rebuild(problem, "cublas"), query))
    assert not list(backend.neighbours(problem, backend.fixed_dispatch(problem), query))


@pytest.mark.parametrize(
    ("kernel", "further"),
    [
        ("cublas_algo3", {}),
        ("skinny_tile8", {}),
        ("cublas", {"bias": True}),
        ("cublas", {"activation": "gelu"}),
        ("cublas", {"workspace_mib": 0}),
        ("cublas", {"out_dtype": dtype_of_name("float64")}),
    ],
)
def test_what_a_source_cannot_do_is_refused(backend: CublasLtBackend, kernel: str, further: dict[str, Any]) -> None:
    with pytest.raises(KernelUnavailableError):
        backend.rebuild(posed("float32", **further), kernel)


def test_a_captured_classic_call_replays_the_eager_bits(backend: CublasLtBackend, torch: Any) -> None:
    for name in ("float32", "bfloat16"):
        problem = posed(name, 256, 384, 512)
        plan = backend.rebuild(problem, "cublas")
        dtype = getattr(torch, name)
        left, right = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((256, 512), (512, 384)))
        out = torch.zeros(256, 384, device="cuda", dtype=dtype)
        addresses = (left.data_ptr(), right.data_ptr(), out.data_ptr())
        plan.run(*addresses, stream=torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        eager = out.clone()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        # A stream that has met no product: the spare workspace is its own from now on.
        with torch.cuda.graph(graph, stream=stream):
            plan.run(*addresses, stream=torch.cuda.current_stream().cuda_stream)
        plan.run(*addresses, stream=torch.cuda.current_stream().cuda_stream)
        for _ in range(3):
            out.zero_()
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(out, eager)


def test_a_winner_of_the_classic_call_is_replayed_by_the_next_process(torch: Any, tmp_path: Path) -> None:
    a, b = (torch.rand(shape, device="cuda") for shape in ((48, 96), (96, 80)))
    exact = a.double() @ b.double()
    with use_context(TuningContext(environ=ONLY_CLASSIC, directory=tmp_path)) as context:
        found = tensorplay.mm(a, b)
        ((op, params, kernel, _ms),) = context.get_results()
        assert kernel.split("_")[0] in {"cublas", "lt"}
        context.override(op, params, "cublas")
        overridden = tensorplay.mm(a, b)
        context.close()
    with use_context(TuningContext(environ=ONLY_CLASSIC, directory=tmp_path)) as context:
        replayed = tensorplay.mm(a, b)
        assert context.stats()["measured"] == 0
        assert [kernel for *_, kernel, _ms in context.get_results()] == ["cublas"]
        assert not context.get_rejections()
        context.close()
    assert torch.equal(overridden, replayed)
    for each in (found, replayed):
        torch.testing.assert_close(each.double(), exact, atol=1e-4, rtol=1e-4)


def test_a_recorded_source_that_cannot_run_is_rejected_with_its_reason(torch: Any, tmp_path: Path) -> None:
    a, b, bias = (torch.rand(shape, device="cuda") for shape in ((48, 96), (96, 80), (80,)))
    for stale in ("cublas", "skinny_tile8_split1", "cublas_algo7"):
        folder = tmp_path / stale
        folder.mkdir()
        with use_context(TuningContext(environ=ON, directory=folder)) as context:
            tensorplay.addmm(bias, a, b)
            ((_op, _params, kernel, _ms),) = context.get_results()
            context.close()
        file = folder / "tunableop_results0.csv"
        file.write_text(file.read_text().replace(kernel, stale))
        with use_context(TuningContext(environ=ON, directory=folder)) as context:
            found = tensorplay.addmm(bias, a, b)
            torch.testing.assert_close(found, torch.addmm(bias, a, b), atol=1e-4, rtol=1e-4)
            (rejection,) = context.get_rejections()
            assert rejection.kernel == stale and rejection.reason
            assert [kernel for *_, kernel, _ms in context.get_results()] != [stale]
            context.close()
        assert stale not in {line.split(",")[2] for line in file.read_text().splitlines() if line.startswith("Gemm")}
