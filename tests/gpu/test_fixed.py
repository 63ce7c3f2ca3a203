"""Fixed dispatch: kernels of our own, classic cuBLAS, threads, and what a device is."""

import threading
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.classic import classic_plan
from tensorplay.backends.cublaslt.gemv import gemv_plan
from tensorplay.errors import OperandError
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.gemm.problem import ACTIVATIONS


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("k", [1, 7, 8, 255, 4096, 5000])
def test_the_matrix_vector_kernels_are_right_however_the_matrix_lies(
    backend: CublasLtBackend, name: str, k: int
) -> None:
    # The last is long enough for eight columns a thread.
    for length in (1, 3, 64, 1000, *((34000,) if k < 4096 else ())):
        for m, n in ((1, length), (length, 1)):
            for transpose in (False, True):
                for alignment in (16, 2):
                    problem = posed(name, m, n, k, transpose_left=transpose and n == 1, alignment=alignment)
                    problem = replace(problem, transpose_right=transpose and m == 1)
                    with backend.open_trial(problem, rotating_bytes=0) as trial:
                        plan = gemv_plan(problem)
                        found = trial.output(plan)
                        np.testing.assert_allclose(found, trial.reference(), atol=0.02 * k**0.5, rtol=0.02)
                        np.testing.assert_array_equal(trial.output(plan), found)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"])
def test_bias_addend_and_activation_of_the_classic_call_are_right(backend: CublasLtBackend, name: str) -> None:
    for bias in (False, True):
        for accumulate in (False, True):
            plain = posed(name, 33, 40, 50, bias=bias, accumulate=accumulate, batch=2, ld_out=44)
            for activation in ("none",) if plain.dtype.is_complex else ACTIVATIONS:
                problem = replace(plain, activation=activation)
                with backend.open_trial(problem, rotating_bytes=0) as trial:
                    found = trial.output(classic_plan(problem))
                    tolerance = 0.1 if name == "bfloat16" else 0.02 if name == "float16" else 1e-4
                    np.testing.assert_allclose(found, trial.reference(), atol=tolerance, rtol=tolerance)


def test_threads_with_biases_of_their_own_do_not_mix_them_up(backend: CublasLtBackend, torch: Any) -> None:
    problem = posed("float32", 16, 64, 32, bias=True)
    plan = backend.first_choice(problem)
    left, right = torch.zeros(16, 32, device="cuda"), torch.zeros(32, 64, device="cuda")
    biases = [torch.full((64,), float(value), device="cuda") for value in range(8)]
    outs = [torch.zeros(16, 64, device="cuda") for _ in range(8)]
    addresses = (left.data_ptr(), right.data_ptr())
    torch.cuda.synchronize()
    wrong: list[int] = []

    def work(number: int) -> None:
        # A thread of its own has no current context.
        stream = torch.cuda.Stream().cuda_stream if number % 2 else 0
        for _ in range(200):
            plan.run(*addresses, outs[number].data_ptr(), 0, biases[number].data_ptr(), stream=stream)
        torch.cuda.synchronize()
        if not bool((outs[number] == number).all()):
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_thread_without_a_context_may_run_a_plan_and_keeps_none(backend: CublasLtBackend) -> None:
    from tensorplay.backends.cublaslt.library import driver

    problem, contexts = posed("float32", 8, 8, 8), []
    plan = backend.first_choice(problem)

    def work() -> None:
        with backend.open_trial(problem, rotating_bytes=0) as trial:
            trial.output(plan)
        contexts.append(int(driver().cuCtxGetCurrent()[1]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert contexts == [0]


@pytest.mark.parametrize("breadth", ["heuristic", "wide", "search"])
def test_a_thread_without_a_context_may_ask_for_candidates_and_keeps_none(
    backend: CublasLtBackend, breadth: str
) -> None:
    from tensorplay.backends.cublaslt.library import driver

    problem, contexts, query = posed("float32", 72, 40, 56), [], CandidateQuery(breadth=breadth)

    def work() -> None:
        plans = list(backend.candidates(problem, query))
        for plan in plans[:4]:
            list(islice(backend.neighbours(problem, plan, query), 20))
        contexts.append(int(driver().cuCtxGetCurrent()[1]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert contexts == [0]


def test_a_device_that_is_not_there_is_named(backend: CublasLtBackend) -> None:
    with pytest.raises(OperandError, match="device 99"):
        backend.first_choice(replace(posed("float32", 8, 8, 8), device="99"))


def test_validators_name_model_and_four_part_library(backend: CublasLtBackend) -> None:
    facts = dict(backend.validators("0"))
    major, _, rest = facts["CUDA_DEVICE"].partition(".")
    assert major.isdigit() and ":" in rest
    assert facts["CUBLASLT_VERSION"].isdigit()
    assert facts["CUBLASLT_LIBRARY"].count(".") >= 3 and "/" not in facts["CUBLASLT_LIBRARY"]
