"""Trials and their timer: times that repeat, and nothing left behind."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt import descriptors, graph, memory, stream
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.device import device
from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.gemm import GemmProblem, dtype_of_name

LISTED = CandidateQuery(breadth="heuristic")


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0"), **further)


@pytest.mark.parametrize(
    "problem",
    [posed("float32", 512, 1024, 256), posed("bfloat16", 16, 4096, 4096), posed("float16", 2048, 2048, 2048)],
    ids=lambda problem: problem.dtype.name,
)
def test_samples_of_one_plan_agree_within_a_few_percent(backend: CublasLtBackend, problem: GemmProblem) -> None:
    plan = backend.first_choice(problem)
    with backend.open_trial(problem, rotating_bytes=backend.default_rotating_bytes("0")) as trial:
        trial.timer.warm_up(plan)
        trial.timer.sample([plan] * 4)
        samples = np.array([trial.timer.sample([plan] * 8) for _ in range(5)])
        screened = trial.timer.screen(plan, 8)
    assert np.all(samples > 0.0005)
    low, middle, high = np.quantile(samples, (0.1, 0.5, 0.9))
    assert (high - low) / middle < 0.05
    assert 0.5 < screened / middle < 2.5


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Do something again and again on another thread, and hand out what it raises."""
    raised: list[BaseException] = []
    is_over = threading.Event()

    def repeat() -> None:
        try:
            while not is_over.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 - the thread that asserts is another
            raised.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield raised
    finally:
        is_over.set()
        thread.join()


def test_another_thread_may_wait_for_the_device_while_kernels_are_timed(backend: CublasLtBackend, torch: Any) -> None:
    plans = {}
    for m in range(8, 200, 8):
        problem = posed("float32", m, 256, 256)
        plans[problem] = [backend.first_choice(problem), *backend.candidates(problem, LISTED)][:4]
    with beside(torch.cuda.synchronize) as raised:
        for problem, candidates in plans.items():
            with backend.open_trial(problem, rotating_bytes=1 << 20) as trial:
                for plan in candidates:
                    trial.timer.warm_up(plan)
                assert min(trial.timer.sample(candidates)) > 0
    assert raised == []


@pytest.mark.parametrize("sizes", [(512, 1024, 256), (64, 4096, 4096)])
def test_samples_beside_another_thread_are_those_of_a_thread_alone(
    backend: CublasLtBackend, sizes: tuple[int, int, int]
) -> None:
    problem = posed("float32", *sizes)
    plan = backend.first_choice(problem)

    def middle() -> float:
        with backend.open_trial(problem, rotating_bytes=backend.default_rotating_bytes("0")) as trial:
            trial.timer.warm_up(plan)
            return float(np.median([trial.timer.sample([plan] * 4) for _ in range(20)]))

    alone = middle()
    with beside(lambda: time.sleep(0.01)):
        beside_another = middle()
    assert beside_another == pytest.approx(alone, rel=0.15)


def test_a_launch_that_the_library_refuses_is_an_error_and_the_timer_goes_on(backend: CublasLtBackend) -> None:
    problem = posed("float32", 64, 64, 64)
    plan = backend.first_choice(problem)

    def refuse(*_operands: object) -> None:
        raise LaunchError("refused")

    broken = Plan(problem, "broken", refuse)
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        trial.timer.warm_up(plan)
        for launch in (
            lambda: trial.timer.warm_up(broken),
            lambda: trial.timer.screen(broken, 2),
            lambda: trial.timer.sample([plan, broken]),
            lambda: trial.output(broken),
        ):
            with pytest.raises(LaunchError):
                launch()
        assert min(trial.timer.sample([plan, plan])) > 0


def test_a_result_that_is_not_written_is_not_a_number(backend: CublasLtBackend) -> None:
    problem = posed("bfloat16", 16, 16, 16)
    idle = Plan(problem, "idle", lambda *_operands: None)
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        assert np.isnan(trial.output(idle)).all()


def test_operands_are_numbers_and_the_same_each_time(backend: CublasLtBackend) -> None:
    for name in ("float32", "float64", "float16", "bfloat16", "complex64"):
        problem = posed(name, 64, 64, 64)
        results = []
        for _ in range(2):
            with backend.open_trial(problem, rotating_bytes=0) as trial:
                results.append(trial.reference())
        np.testing.assert_array_equal(results[0], results[1])
        deviation = results[0].real.std()
        assert np.isfinite(deviation)
        assert deviation > 1


def test_a_closed_trial_says_so(backend: CublasLtBackend) -> None:
    problem = posed("float32", 8, 8, 8)
    with backend.open_trial(problem, rotating_bytes=0) as trial:
        plan = backend.first_choice(problem)
    for use in (lambda: trial.output(plan), trial.reference, lambda: trial.timer.sample([plan])):
        with pytest.raises(MeasurementError):
            use()


def test_operands_that_do_not_fit_are_refused_before_anything_is_allocated(backend: CublasLtBackend) -> None:
    problem = posed("float32", 1 << 20, 1 << 20, 16)
    before = memory.live_bytes()
    with pytest.raises(MemoryError, match="quarter"), backend.open_trial(problem, rotating_bytes=0):
        pass
    assert memory.live_bytes() == before


def test_fifty_shapes_leave_nothing_behind(backend: CublasLtBackend) -> None:
    def measure(size: int) -> None:
        problem = posed("float32", 8 * size + 8, 128, 96, bias=bool(size % 2))
        with backend.open_trial(problem, rotating_bytes=8 << 20) as trial:
            for plan in (backend.first_choice(problem), *backend.candidates(problem, LISTED)):
                trial.timer.warm_up(plan)
                assert trial.timer.screen(plan, 4) > 0
                trial.timer.sample([plan])
                trial.output(plan)

    def counts() -> tuple[object, ...]:
        backend.forget_plans()
        gc.collect()
        return descriptors.live_descriptors(), stream.live_events(), graph.live_graphs(), memory.live_bytes()

    measure(0)
    before, free = counts(), device(0).free_bytes
    for size in range(50):
        measure(size)
    assert counts() == before
    assert free - device(0).free_bytes <= 64 << 20
