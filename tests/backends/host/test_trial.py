import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import Plan
from tensorplay.backends.host import trial as module
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.dtypes import numpy_dtype
from tensorplay.backends.host.operands import operand_bytes
from tensorplay.backends.host.trial import HostTrial, host_trial
from tensorplay.errors import LaunchError, MeasurementError
from tensorplay.gemm import GemmProblem, dtype_of_word

FLOAT32 = dtype_of_word("Float32")
PROBLEM = GemmProblem(dtype=FLOAT32, m=30, n=40, k=50)
LARGE = GemmProblem(dtype=FLOAT32, m=500, n=500, k=500)
FIRST = HostBackend().first_choice(PROBLEM)


def number_of_sets(trial: HostTrial) -> int:
    seen: list[int] = []

    def run(left: Any, right: Any, out: Any) -> Any:
        seen.append(id(left))
        return out

    trial.timer.screen(Plan(PROBLEM, "host_numpy", run), 200)
    return len(set(seen))


@pytest.mark.parametrize(("rotating_bytes", "sets"), [(0, 1), (1, 1), (3, 4), (10, 11), (63, 64), (1000, 64)])
def test_operands_rotate_through_one_set_more_than_the_pool_holds(rotating_bytes: int, sets: int) -> None:
    each = operand_bytes(PROBLEM)
    with host_trial(PROBLEM, rotating_bytes=rotating_bytes * each if rotating_bytes > 1 else rotating_bytes) as trial:
        assert number_of_sets(trial) == sets


def test_the_pool_takes_at_most_a_quarter_of_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_memory_bytes", lambda: 4 * 5 * operand_bytes(PROBLEM) + 3)
    with host_trial(PROBLEM, rotating_bytes=1 << 40) as trial:
        assert number_of_sets(trial) == 5


@pytest.mark.parametrize("size", [10**6, 10**18 - 1])
def test_a_product_that_does_not_fit_is_refused_before_anything_is_allocated(size: int) -> None:
    problem = GemmProblem(dtype=FLOAT32, m=size, n=size, k=size)
    with pytest.raises(MemoryError, match="a quarter of the free memory"):
        HostBackend().open_trial(problem, rotating_bytes=0).__enter__()


def test_a_closed_trial_has_given_back_its_memory_even_if_it_is_kept() -> None:
    tracemalloc.start()
    try:
        with host_trial(LARGE, rotating_bytes=8 << 20) as trial:
            trial.output(Plan(LARGE, "host_numpy", np.matmul))
            trial.reference()
            trial.timer.sample([Plan(LARGE, "host_numpy", np.matmul)])
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] > 9 << 20
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(MeasurementError, match="closed"):
        trial.output(FIRST)
    with pytest.raises(MeasurementError, match="closed"):
        trial.reference()


def test_memory_is_given_back_when_the_measurement_fails() -> None:
    with pytest.raises(ZeroDivisionError), host_trial(PROBLEM, rotating_bytes=0) as trial:
        raise ZeroDivisionError
    with pytest.raises(MeasurementError, match="closed"):
        trial.timer.warm_up(FIRST)


def test_every_element_that_is_not_written_is_nan() -> None:
    def run(left: Any, right: Any, out: Any) -> Any:
        out[0] = 1
        return out

    with host_trial(PROBLEM, rotating_bytes=0) as trial:
        for _ in range(2):
            found = trial.output(Plan(PROBLEM, "host_numpy", run))
            assert (found[0] == 1).all()
            assert np.isnan(found[1:]).all()


def test_outputs_are_copies_of_products_of_the_same_operands() -> None:
    with host_trial(PROBLEM, rotating_bytes=1 << 20) as trial, host_trial(PROBLEM, rotating_bytes=0) as other:
        first = trial.output(FIRST)
        trial.timer.sample([FIRST])
        assert first.tobytes() == trial.output(FIRST).tobytes() == other.output(FIRST).tobytes()
        np.testing.assert_allclose(first, trial.reference(), atol=1e-4)
        assert trial.reference() is trial.reference()


@pytest.mark.parametrize(
    ("word", "expected"),
    [("Float16", np.float16), ("BFloat16", np.float32), ("Float64", np.float64), ("Complex64", np.complex64)],
)
def test_outputs_have_the_problems_type_and_bfloat16_comes_as_float32(word: str, expected: Any) -> None:
    problem = GemmProblem(dtype=dtype_of_word(word), m=3, n=4, k=5, ld_out=7)
    with host_trial(problem, rotating_bytes=0) as trial:
        found = trial.output(HostBackend().first_choice(problem))
    assert found.dtype == expected
    assert found.flags.c_contiguous
    if word == "BFloat16":
        np.testing.assert_array_equal(found, found.astype(numpy_dtype(problem.dtype)).astype(np.float32))


def test_a_plan_that_fails_or_returns_something_else_is_a_launch_error() -> None:
    def fail(left: Any, right: Any, out: Any) -> Any:
        raise RuntimeError("no luck")

    with host_trial(PROBLEM, rotating_bytes=0) as trial:
        with pytest.raises(LaunchError, match="host_numpy failed: RuntimeError: no luck"):
            trial.output(Plan(PROBLEM, "host_numpy", fail))
        with pytest.raises(LaunchError, match="returned another array"):
            trial.output(Plan(PROBLEM, "host_numpy", lambda left, right, _: left @ right))


@pytest.mark.parametrize("place", [-1, 30 * 40, -16, 30 * 40 + 15])
@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_plan_that_writes_beside_a_dense_result_is_a_launch_error(place: int, value: float) -> None:
    def run(left: Any, right: Any, out: Any) -> Any:
        np.matmul(left, right, out)
        first = np.lib.stride_tricks.as_strided(out, (1, 2), (4, 4 * place))
        first[0, 1] = value
        return out

    with host_trial(PROBLEM, rotating_bytes=0) as trial:
        with pytest.raises(LaunchError, match="host_numpy writes beside its result"):
            trial.output(Plan(PROBLEM, "host_numpy", run))
        trial.output(FIRST)


@pytest.mark.parametrize("word", ["Float32", "Float16", "BFloat16", "Complex64"])
def test_a_plan_that_writes_between_the_rows_of_its_result_is_a_launch_error(word: str) -> None:
    problem = GemmProblem(dtype=dtype_of_word(word), m=3, n=4, k=5, ld_out=7)

    def run(left: Any, right: Any, out: Any) -> Any:
        np.lib.stride_tricks.as_strided(out, (3, 5), out.strides)[...] = 1.0
        return out

    with host_trial(problem, rotating_bytes=0) as trial, pytest.raises(LaunchError, match="beside"):
        trial.output(Plan(problem, "host_numpy", run))


def test_the_first_choice_reads_nothing_between_rows_and_beside_operands() -> None:
    for transposed in (False, True):
        columns = (30, 50) if transposed else (50, 40)
        problem = GemmProblem(
            dtype=FLOAT32, m=30, n=40, k=50, ld_left=columns[0] + 3, ld_right=columns[1] + 2, ld_out=41,
            transpose_left=transposed, transpose_right=transposed,
        )  # fmt: skip
        with host_trial(problem, rotating_bytes=0) as trial:
            assert np.isfinite(trial.output(HostBackend().first_choice(problem))).all()
