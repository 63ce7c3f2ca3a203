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
    factors = Scalars(scale_type).pair(alpha, beta)
    found = [read(address, scale_type) for address in factors.addresses]
    np.testing.assert_array_equal(found, expected)


def test_complex_numbers_keep_both_parts() -> None:
    factors = Scalars(C_64F).pair(1 + 2j, complex(0, -3))
    alpha, beta = factors.addresses
    assert (read(alpha, C_64F), read(beta, C_64F)) == (1 + 2j, -3j)


def test_a_part_beyond_the_type_leaves_the_other_part_alone() -> None:
    factors = Scalars(C_32F).pair(complex(-1e300, 5.0), 2)
    assert read(factors.addresses[0], C_32F) == complex(-math.inf, 5.0)
    assert read(factors.addresses[1], C_32F) == 2.0


def test_threads_do_not_write_to_each_others_memory() -> None:
    numbers, addresses, barrier = Scalars(R_32F), {}, threading.Barrier(4)

    def work(value: float) -> None:
        pair = numbers.pair(value, -value)
        barrier.wait(10)
        addresses[value] = (pair.addresses, [read(address, R_32F) for address in pair.addresses])
        barrier.wait(10)

    threads = [threading.Thread(target=work, args=(float(value),)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found == [value, -value] for value, (_, found) in addresses.items())
    assert len({pair for pair, _ in addresses.values()}) == 4


def test_what_was_given_back_is_used_again_and_nothing_else() -> None:
    numbers = Scalars(R_64F)
    outer = numbers.pair(1, 2)
    # As a signal handler's product in the middle of another.
    inner = numbers.pair(3, 4)
    assert [read(address, R_64F) for address in outer.addresses] == [1.0, 2.0]
    numbers.give_back(inner)
    assert numbers.pair(5, 6) is inner
    assert [read(address, R_64F) for address in (*outer.addresses, *inner.addresses)] == [1.0, 2.0, 5.0, 6.0]


def test_what_is_never_given_back_costs_nothing_but_its_memory() -> None:
    numbers = Scalars(R_32F)
    for number in range(100):
        numbers.pair(number, number)
    assert not numbers._idle
