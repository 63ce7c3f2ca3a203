"""Thread counts belong to a plan: other threads' work, and NumPy's own, never sees them."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import numpy as np
import pytest

from tensorplay.backends.base import Plan
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.kernel import Array
from tensorplay.backends.host.library import thread_limit
from tensorplay.backends.host.threaded_kernels import within_limit
from tensorplay.gemm import GemmProblem, dtype_of_word

pytestmark = pytest.mark.usefixtures("own_blas")

PROBLEM = GemmProblem(dtype=dtype_of_word("Float32"), m=200, n=210, k=220)
LEFT = np.random.default_rng(0).random((200, 220), np.float32)
RIGHT = np.random.default_rng(1).random((220, 210), np.float32)
COUNTS = sorted({1, thread_limit()})


def plan(threads: int) -> Plan:
    return HostBackend().rebuild(PROBLEM, f"host_numpy_threads{threads}")


def numpys_threads() -> list[tuple[str, int]]:
    import threadpoolctl

    return sorted((library["filepath"], library["num_threads"]) for library in threadpoolctl.threadpool_info())


def test_thread_counts_do_not_leak_to_numpy_while_another_thread_multiplies() -> None:
    before, seen, stop = numpys_threads(), set(), Event()

    def multiply() -> None:
        while not stop.is_set():
            np.matmul(LEFT, RIGHT)
            seen.add(tuple(numpys_threads()))

    other = Thread(target=multiply)
    other.start()
    try:
        for _ in range(20):
            for threads in COUNTS:
                plan(threads).run(LEFT, RIGHT, None)
            seen.add(tuple(numpys_threads()))
    finally:
        stop.set()
        other.join()
    assert seen == {tuple(before)}
    assert numpys_threads() == before


def test_plans_of_different_thread_counts_run_at_once_and_are_right() -> None:
    expected = LEFT @ RIGHT

    def multiply(threads: int) -> float:
        out = np.empty_like(expected)
        run = plan(threads).run
        return max(float(np.abs(run(LEFT, RIGHT, out) - expected).max()) for _ in range(30))

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(multiply, COUNTS * 4)) < 1e-2


def test_loading_leaves_the_environment_and_the_processors_as_they_were() -> None:
    code = """
import os, subprocess, sys
from tensorplay.backends.host.library import numpy_blas
from tensorplay.backends.host.private_blas import private_blas
before = os.sched_getaffinity(0), dict(os.environ)
private_blas(numpy_blas(), 1), private_blas(numpy_blas(), 2)
assert (os.sched_getaffinity(0), dict(os.environ)) == before
print(subprocess.run(["printenv", "OPENBLAS_THREAD_TIMEOUT"], capture_output=True, text=True).stdout, end="")
"""
    for value in (None, "20"):
        environment = {name: text for name, text in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
        if value is not None:
            environment["OPENBLAS_THREAD_TIMEOUT"] = value
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
        assert done.stdout.strip() == (value or "")


def test_an_instance_starts_no_more_threads_than_it_was_asked_for() -> None:
    code = """
import os
from tensorplay.backends.host.library import numpy_blas
from tensorplay.backends.host.private_blas import private_blas
started = [len(os.listdir("/proc/self/task"))]
for threads in (1, 4, 2):
    private_blas(numpy_blas(), threads)
    started.append(len(os.listdir("/proc/self/task")))
print(*(later - earlier for earlier, later in zip(started, started[1:])))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "3", "1"]


def test_a_forked_child_runs_plans_with_threads() -> None:
    code = """
import os, sys, warnings
import numpy as np
from tensorplay.backends.host.library import numpy_blas
from tensorplay.backends.host.private_blas import private_blas
from tensorplay.backends.host.direct_gemm import direct_multiply
from tensorplay.gemm import GemmProblem, dtype_of_word
warnings.simplefilter("ignore", DeprecationWarning)
problem = GemmProblem(dtype=dtype_of_word("Float64"), m=300, n=300, k=300)
a = np.random.default_rng(0).random((300, 300))
expected = a @ a
def right(threads):
    out = np.empty_like(a)
    direct_multiply(problem, private_blas(numpy_blas(), threads), "test")(a, a, out)
    return np.allclose(out, expected)
assert right(1) and right(2)
for generation in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if right(1) and right(2) and right(3) and right(2) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert right(2)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)


def test_while_numpy_is_limited_a_plan_with_more_threads_is_numpys() -> None:
    import threadpoolctl

    if thread_limit() < 2:
        pytest.skip("one thread is all that may be used here")
    own: list[str] = []

    def multiply(left: Array, right: Array, out: Array | None = None) -> Array:
        own.append("ran")
        return np.matmul(left, right, out)

    run, single = within_limit(multiply, 2), within_limit(multiply, 1)
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        np.testing.assert_array_equal(run(LEFT, RIGHT, None), np.matmul(LEFT, RIGHT))
        assert own == []
        single(LEFT, RIGHT, None)
        assert own == ["ran"]
    run(LEFT, RIGHT, None)
    assert own == ["ran", "ran"]
