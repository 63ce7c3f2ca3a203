"""Skinny kernels on a device: right for every layout, the same bits again, and silent under a capture."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.capture import is_any_capture_seen
from tensorplay.backends.cublaslt.skinny import modules
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.plan import skinny_plan
from tensorplay.backends.cublaslt.skinny.provider import SkinnySource
from tensorplay.backends.cublaslt.trial import cuda_trial
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, SourceKernelId, dtype_of_name, parse_kernel_id

SOURCE = SkinnySource()


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


PROBLEMS = [
    posed("bfloat16", 1, 4096, 4096, transpose_right=True),
    posed("bfloat16", 16, 1000, 777, transpose_right=True, bias=True, activation="gelu"),
    posed("float16", 5, 333, 64, bias=True, activation="relu", accumulate=True),
    posed("float16", 300, 7, 1025, transpose_left=True, accumulate=True),
    posed("bfloat16", 300, 16, 512, bias=True, ld_left=520, ld_right=24, ld_out=17),
    posed("float32", 16, 1024, 4096, transpose_right=True),
    posed("float32", 64, 10, 784, bias=True),
    posed("float32", 3, 100, 1, transpose_left=True),
    posed("bfloat16", 4, 500, 600, out_dtype=dtype_of_name("float32"), alignment=2, ld_right=501),
    posed("bfloat16", 1, 1, 1),
]


def kernel_id(plan: Plan) -> SourceKernelId:
    parsed = parse_kernel_id(plan.kernel)
    assert isinstance(parsed, SourceKernelId)
    return parsed


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.dtype.name}-{problem.m}-{problem.n}")
def test_candidates_and_their_neighbours_are_right_and_repeat_to_the_bit(problem: GemmProblem) -> None:
    plans = list(islice(SOURCE.candidates(problem, CandidateQuery()), 4))
    assert plans
    beside = SOURCE.neighbours(problem, kernel_id(plans[0]), CandidateQuery(breadth="search"))
    plans += islice((each for each in beside if isinstance(each, Plan)), 8)
    out = problem.out_dtype or problem.dtype
    with cuda_trial(problem, rotating_bytes=0) as trial:
        expected = trial.reference()
        for plan in plans:
            found = trial.output(plan)
            atol = 2.0**-20 * problem.k + out.unit_roundoff * 2.0**-4
            np.testing.assert_allclose(found, expected, rtol=2 * out.unit_roundoff, atol=atol, err_msg=plan.kernel)
            np.testing.assert_array_equal(trial.output(SOURCE.rebuild(problem, kernel_id(plan))), found)


@pytest.mark.parametrize(("mma", "is_along"), [(0, True), (1, True), (2, True), (0, False), (1, False)])
def test_what_is_not_finite_spoils_its_own_row_and_column_only(torch: Any, mma: int, is_along: bool) -> None:
    x = torch.randn(4, 1024, device="cuda").bfloat16()
    weight = torch.randn(1024, 512, device="cuda").bfloat16()
    x[1, 3], x[2, 700] = float("nan"), float("inf")
    weight[5, 7], weight[1000, 300] = float("-inf"), float("nan")
    stored = weight.T.contiguous() if is_along else weight
    problem = posed("bfloat16", 4, 512, 1024, transpose_right=is_along)
    rows = 256 if (mma, is_along) == (0, False) else 8 if mma == 0 else 64
    configuration = Configuration(mma=mma, tile=rows, rows=rows, split=1, vec=16, stages=2, threads=64)
    out = torch.zeros(4, 512, device="cuda", dtype=torch.bfloat16)
    stream = torch.cuda.current_stream().cuda_stream
    skinny_plan(problem, configuration).run(x.data_ptr(), stored.data_ptr(), out.data_ptr(), stream=stream)
    expected = (x.double() @ weight.double()).float()
    torch.testing.assert_close(out.float(), expected, rtol=2e-2, atol=5e-1, equal_nan=True)


@pytest.mark.parametrize("mma", [1, 2])
def test_many_bytes_of_shared_memory_and_every_stage_give_the_same_product(torch: Any, mma: int) -> None:
    x = torch.randn(8, 4104, device="cuda").bfloat16()
    weight = torch.randn(1000, 4104, device="cuda").bfloat16() / 64
    problem = posed("bfloat16", 8, 1000, 4104, transpose_right=True)
    stream = torch.cuda.current_stream().cuda_stream
    expected = x.float() @ weight.float().T
    for stages in (1, 2, 3, 4, 6):
        configuration = Configuration(mma=mma, tile=24, rows=24, split=2, vec=16, stages=stages, threads=256)
        out = torch.full((8, 1000), float("nan"), device="cuda", dtype=torch.bfloat16)
        skinny_plan(problem, configuration).run(x.data_ptr(), weight.data_ptr(), out.data_ptr(), stream=stream)
        torch.testing.assert_close(out.float(), expected, rtol=2e-2, atol=5e-2)


def test_overlapping_the_kernel_ahead_changes_no_bit(torch: Any) -> None:
    rows = torch.randn(4, 4096, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    problem = posed("bfloat16", 4, 4096, 4096, transpose_right=True)
    plan = next(SOURCE.candidates(problem, CandidateQuery()))
    alone = skinny_plan(problem, Configuration.of(kernel_id(plan)), is_overlapping=False)
    results = []
    stream = torch.cuda.current_stream().cuda_stream
    for each in (alone, plan):
        ahead, behind = rows.clone(), torch.empty_like(rows)
        for _ in range(50):
            # Each reads what the one before it wrote.
            each.run(ahead.data_ptr(), weight.data_ptr(), behind.data_ptr(), stream=stream)
            ahead, behind = behind, ahead
        torch.cuda.synchronize()
        results.append(ahead.float().cpu().numpy())
    np.testing.assert_array_equal(*results)


def test_a_kernel_that_is_not_loaded_is_refused_under_a_capture_and_one_that_is_runs(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = posed("bfloat16", 2, 256, 512, transpose_right=True)
    configuration = Configuration(mma=1, tile=24, rows=24, split=1, vec=8, stages=3, threads=96)
    left, right = (torch.randn(2, 512, device="cuda").bfloat16(), torch.randn(256, 512, device="cuda").bfloat16())
    out = torch.zeros(2, 256, device="cuda", dtype=torch.bfloat16)
    modules._functions.clear()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    # torch's streams are seen only where they are asked about.
    monkeypatch.setattr(modules, "is_any_capture_seen", lambda _: is_any_capture_seen(stream.cuda_stream))
    with torch.cuda.graph(graph, stream=stream):
        out.add_(0.0)
        with pytest.raises(KernelUnavailableError, match="capture"):
            skinny_plan(problem, configuration)
    plan = skinny_plan(problem, configuration)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        plan.run(left.data_ptr(), right.data_ptr(), out.data_ptr(), stream=stream.cuda_stream)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(out, left @ right.T, rtol=2e-2, atol=1e-1)


@pytest.mark.parametrize(
    "options",
    [
        "skinny",
        "skinny_mma1_tile16",
        "skinny_mma3_tile16_rows16_split1_vec16_stages2_threads64",
        "skinny_mma2_tile16_rows16_split1_vec8_stages2_threads64",
        "skinny_mma1_tile12_rows12_split1_vec16_stages2_threads64",
        "skinny_mma1_tile16_rows16_split3_vec16_stages2_threads64",
        "skinny_mma1_tile16_rows16_split1_vec32_stages2_threads64",
        "skinny_mma1_tile16_rows16_split1_vec16_stages9_threads64",
        "skinny_mma1_tile16_rows16_split1_vec16_stages2_threads2147483647",
        "skinny_tile16_mma1_rows16_split1_vec16_stages2_threads64",
    ],
)
def test_an_invented_kernel_is_refused_with_a_reason(options: str) -> None:
    parsed = parse_kernel_id(options)
    assert isinstance(parsed, SourceKernelId)
    with pytest.raises(KernelUnavailableError, match="skinny"):
        SOURCE.rebuild(PROBLEMS[0], parsed)
