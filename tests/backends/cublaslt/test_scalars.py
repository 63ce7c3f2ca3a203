"""Alpha and beta in host memory."""

import ctypes
import math
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.number_types import C_32F, C_64F, R_16F, R_32F, R_64F
from tensorplay.backends.cublaslt.scalars import Scalars, scalars

NUMPY: dict[int, Any] = {
    R_16F: np.float16,
    R_32F: np.float32,
    R_64F: np.float64,
    C_32F: np.complex64,
    C_64F: np.complex128,
}


def read(address: int, scale_type: int) -> complex:
    kind = np.dtype(NUMPY[scale_type])
    return complex(np.frombuffer(ctypes.string_at(address, kind.itemsize), kind)[0])


@pytest.mark.parametrize("scale_type", NUMPY)
def test_the_constants_are_nought_and_one(scale_type: int) -> None:
    numbers = scalars(scale_type)
    assert read(numbers.zero, scale_type) == 0.0
    assert read(numbers.one, scale_type) == 1.0


@given(scale_type=st.sampled_from(list(NUMPY)), alpha=st.floats(), beta=st.floats())
def test_numbers_are_rounded_to_the_scale_type(scale_type: int, alpha: float, beta: float) -> None:
    with np.errstate(over="ignore"):
        expected = [complex(NUMPY[scale_type](value)) for value in (alpha, beta)]
    found = [read(address, scale_type) for address in Scalars(scale_type).pair(alpha, beta)]
    np.testing.assert_array_equal(found, expected)


def test_complex_numbers_keep_both_parts() -> None:
    alpha, beta = Scalars(C_64F).pair(1 + 2j, complex(0, -3))
    assert (read(alpha, C_64F), read(beta, C_64F)) == (1 + 2j, -3j)


def test_a_part_beyond_the_type_leaves_the_other_part_alone() -> None:
    found = read(Scalars(C_32F).pair(complex(-1e300, 5.0), 0)[0], C_32F)
    assert found == complex(-math.inf, 5.0)


def test_threads_do_not_write_to_each_others_memory() -> None:
    numbers, addresses, barrier = Scalars(R_32F), {}, threading.Barrier(4)

    def work(value: float) -> None:
        pair = numbers.pair(value, -value)
        barrier.wait(10)
        addresses[value] = (pair, [read(address, R_32F) for address in pair])
        barrier.wait(10)

    threads = [threading.Thread(target=work, args=(float(value),)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found == [value, -value] for value, (_, found) in addresses.items())
    assert len({pair for pair, _ in addresses.values()}) == 4


def test_one_thread_reuses_its_memory() -> None:
    numbers = Scalars(R_64F)
    assert numbers.pair(1, 2) == numbers.pair(3, 4)
