"""Kernels compiled on threads of their own: no context is needed or left there, and no capture takes notice."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tensorplay.backends.base import Plan
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.compiler import compile_source
from tensorplay.backends.cublaslt.compiling import begin_compiling, code_of
from tensorplay.backends.cublaslt.device import current, device
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.nvrtc import kernel
from tensorplay.gemm import GemmProblem, dtype_of_name


def posed(m: int, n: int, k: int) -> GemmProblem:
    dtype = dtype_of_name("float32")
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"))


def sources(name: str) -> list[str]:
    """Return sources that nobody has compiled before, so that the threads have something to do."""
    return [f'extern "C" __global__ void {name}_{number}(float* out) {{ *out = {number}; }}' for number in range(24)]


def test_a_thread_that_compiles_has_no_context_then() -> None:
    def compiled() -> tuple[bytes, int]:
        code = compile_source(sources("alone")[0], device(0).capability)
        return code, int(driver().cuCtxGetCurrent()[1])

    with ThreadPoolExecutor(1) as pool:
        code, context = pool.submit(compiled).result()
    assert code.startswith(b"\x7fELF")
    assert context == 0


def test_plans_are_captured_and_timed_while_kernels_are_compiled(backend: CublasLtBackend) -> None:
    problem, wanted = posed(64, 1024, 512), sources("beside")
    plan = backend.first_choice(problem)
    with backend.open_trial(problem, rotating_bytes=1 << 20) as trial:
        trial.timer.warm_up(plan)
        begin_compiling(wanted, device(0).capability)
        assert min(trial.timer.sample([plan] * 4)) > 0
    with current(0):
        for number, source in enumerate(wanted):
            assert code_of(source, device(0).capability).startswith(b"\x7fELF")
            kernel(0, source, f"beside_{number}", ())


@pytest.mark.parametrize("sizes", [(8, 8, 8), (512, 1024, 256), (4096, 4096, 1024)])
def test_a_sample_counts_for_all_the_launches_that_it_is_the_mean_of(
    backend: CublasLtBackend, sizes: tuple[int, int, int]
) -> None:
    problem = posed(*sizes)
    plan, launched = backend.first_choice(problem), []

    def run(*operands: Any) -> object:
        launched.append(operands)
        return plan.run(*operands)

    counted = Plan(problem, "counted", run)
    with backend.open_trial(problem, rotating_bytes=backend.default_rotating_bytes("0")) as trial:
        trial.timer.warm_up(counted)
        trial.timer.screen(counted, 4)
        foreseen = trial.timer.sample_launches(counted)
        launched.clear()
        trial.timer.sample([counted])
        # Recorded once for a graph; without one it runs as often, an untimed sample first.
        assert launched
        assert len(launched) % foreseen == 0
        assert trial.timer.sample_launches(counted) == foreseen
