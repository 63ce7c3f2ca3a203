from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.host import mkl_kernels
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.library import thread_limit
from tensorplay.gemm import GemmProblem, dtype_of_word

PROBLEM = GemmProblem(dtype=dtype_of_word("Float64"), m=100, n=110, k=120)
LEFT, RIGHT = np.random.default_rng(0).random((100, 120)), np.random.default_rng(1).random((120, 110))


@pytest.fixture
def mkl() -> Iterator[Any]:
    if not mkl_kernels.has_mkl():
        pytest.skip("MKL is not installed")
    return mkl_kernels._mkl().library


def test_every_thread_count_is_right_and_is_set_back(mkl: Any) -> None:
    before = mkl.MKL_Get_Max_Threads()
    for threads in range(1, thread_limit() + 1):
        plan = HostBackend().rebuild(PROBLEM, f"host_mkl_threads{threads}")
        np.testing.assert_allclose(plan.run(LEFT, RIGHT, None), LEFT @ RIGHT)
        assert mkl.MKL_Get_Max_Threads() == before


def test_the_callers_own_thread_count_is_set_back_even_after_an_error(mkl: Any) -> None:
    plan = HostBackend().rebuild(PROBLEM, "host_mkl_threads1")
    global_count = mkl.MKL_Set_Num_Threads_Local(3)
    try:
        plan.run(LEFT, RIGHT, None)
        assert mkl.MKL_Set_Num_Threads_Local(3) == 3
        with pytest.raises(AttributeError):
            plan.run(LEFT, None, np.empty((100, 110)))
        assert mkl.MKL_Set_Num_Threads_Local(3) == 3
    finally:
        mkl.MKL_Set_Num_Threads_Local(global_count)


def test_other_threads_never_see_the_count(mkl: Any) -> None:
    plan, stop = HostBackend().rebuild(PROBLEM, "host_mkl_threads1"), Event()

    def multiply() -> None:
        while not stop.is_set():
            plan.run(LEFT, RIGHT, None)

    other = Thread(target=multiply)
    before = mkl.MKL_Get_Max_Threads()
    other.start()
    try:
        assert {mkl.MKL_Get_Max_Threads() for _ in range(1000)} == {before}
    finally:
        stop.set()
        other.join()


def test_mkl_takes_no_part_where_bits_must_repeat(mkl: Any) -> None:
    del mkl
    sources = frozenset({"mkl"})
    assert list(HostBackend().candidates(PROBLEM, CandidateQuery(sources=sources)))
    assert not list(HostBackend().candidates(PROBLEM, CandidateQuery(sources=sources, deterministic=True)))
    assert not HostBackend().rebuild(PROBLEM, "host_mkl_threads1").is_deterministic
