"""Sets of scratch operands: the same numbers in each, at other places, two of them at least. On the stand-in too."""

from dataclasses import replace
from typing import Any

import pytest

from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.host_copy import bytes_from_device
from tensorplay.backends.cublaslt.scratch import operand_bytes
from tensorplay.backends.cublaslt.trial import CudaTrial
from tensorplay.gemm import GemmProblem, dtype_of_name


def posed(name: str, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=24, n=40, k=56, device="0"), **further)


@pytest.mark.parametrize("name", ["float16", "float64"])
def test_sets_of_operands_hold_the_same_numbers_and_lie_in_different_ways(backend: CublasLtBackend, name: str) -> None:
    problem, count = posed(name, bias=True, accumulate=True), 37
    with backend.open_trial(problem, rotating_bytes=(count - 1) * operand_bytes(problem)) as trial, current(0):
        assert isinstance(trial, CudaTrial)
        scratch, stream = trial._scratch, trial._stream
        assert len(scratch.sets) == count
        sizes = {"left": problem.m * problem.k, "right": problem.k * problem.n, "c": problem.m * problem.n}
        for part, elements in {**sizes, "bias": problem.n}.items():
            nbytes = elements * problem.dtype.itemsize
            stored = [bytes_from_device(getattr(each, part), nbytes, stream) for each in scratch.sets]
            assert any(stored[0])
            assert all((each == stored[0]).all() for each in stored), part
        apart = {(each.right - each.left, each.out - each.right) for each in scratch.sets}
        assert len(apart) > 4
        addresses = sorted(
            getattr(each, part) for each in scratch.sets for part in ("left", "right", "out", "c", "bias")
        )
        assert len(set(addresses)) == 5 * count


def test_there_are_two_sets_at_least_so_that_no_launch_reads_what_the_one_before_has_read(
    backend: CublasLtBackend,
) -> None:
    for rotating_bytes, sets in ((1, 2), (0, 1)):
        with backend.open_trial(posed("float32"), rotating_bytes=rotating_bytes) as trial:
            assert isinstance(trial, CudaTrial)
            assert len(trial._scratch.sets) == sets, "nothing rotates only where that is turned off"
