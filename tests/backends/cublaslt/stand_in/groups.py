"""Drives grouped calls, from sizes to results, on the stand-in libraries; run by `test_grouped.py`."""

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.cublaslt import compiling, grouped_call, library, memory
from tensorplay.backends.cublaslt.grouped_call import MOST_PRODUCTS, GroupedCall
from tensorplay.backends.cublaslt.member import Member
from tensorplay.backends.cublaslt.pointer_arrays import MOST_ADDRESSES
from tensorplay.errors import KernelUnavailableError, LaunchError

Array = NDArray[Any]
TYPES = {"float32": "float32", "tf32": "float32", "float64": "float64", "float16": "float16"}


class Matrix:
    """A matrix in memory of its own, stored by rows of `ld`, or as the transposed view of one."""

    def __init__(
        self, rng: np.random.Generator, rows: int, columns: int, ld: int, dtype: str, *, transposed: bool
    ) -> None:
        stored = (columns, rows) if transposed else (rows, columns)
        item = np.dtype(dtype).itemsize
        self.memory = np.zeros(stored[0] * ld * item + 64, np.uint8)
        start = -self.memory.ctypes.data % 64
        plain: Array = np.ndarray(stored, dtype, self.memory, start, (ld * item, item))
        plain[...] = rng.uniform(-1, 1, stored)
        self.values = plain.T if transposed else plain
        self.pointer = plain.ctypes.data


class Products:
    """Operands of products of random sizes."""

    def __init__(self, members: list[Member], dtype: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        storage = TYPES[dtype]
        self.left, self.right, self.out = [], [], []
        for each in members:
            self.left.append(Matrix(rng, each.m, each.k, each.ld_left, storage, transposed=each.transpose_left))
            self.right.append(Matrix(rng, each.k, each.n, each.ld_right, storage, transposed=each.transpose_right))
            self.out.append(Matrix(rng, each.m, each.n, each.ld_out, storage, transposed=False))
        self.pointers = [[matrix.pointer for matrix in each] for each in (self.left, self.right, self.out)]

    def check(self, call: GroupedCall, stream: int, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Run the call, and compare all results."""
        operands = zip(self.left, self.right, self.out, strict=True)
        expected = [
            alpha * a.values.astype(np.float64) @ b.values + (beta * c.values if beta else 0) for a, b, c in operands
        ]
        if not beta:
            for each in self.out:
                each.values[...] = np.nan
        call.run(*self.pointers, alpha, beta, stream=stream)
        for exact, each in zip(expected, self.out, strict=True):
            np.testing.assert_allclose(each.values, exact, atol=3e-2 if each.values.itemsize == 2 else 1e-5)


def drawn(rng: np.random.Generator) -> Member:
    """Return a member of random sizes, transposes and padding."""
    m, n, k = (int(size) for size in rng.integers(1, 10, 3))
    left, right = (bool(turned) for turned in rng.integers(0, 2, 2))
    more = [int(padding) for padding in rng.choice((0, 0, 3), 3)]
    lds = (m if left else k) + more[0], (k if right else n) + more[1], n + more[2]
    return Member(left, right, m, n, k, *lds)


def check_values(stream: int, counts: ctypes.CDLL) -> None:
    """Compare products of every type and of random sizes, some of them alike, with float64."""
    rng = np.random.default_rng(0)
    for dtype in TYPES:
        for seed, count in enumerate((2, 3, 17)):
            members = [drawn(rng) for _ in range(count)]
            members += members[:2]
            call = GroupedCall(members, dtype=dtype, ordinal=0)
            before = number(counts, "fake_grouped")
            for factors in ((1.0, 0.0), (0.5, -2.0), (1.0, 1.0)):
                Products(members, dtype, seed).check(call, stream, *factors)
            assert number(counts, "fake_grouped") == before + 3
            assert number(counts, "fake_groups") == len(set(members))


def check_uniform(stream: int, counts: ctypes.CDLL) -> None:
    """Let the batched call do what is alike."""
    member = Member(False, True, 5, 6, 7, 7, 9, 6)
    for dtype in TYPES:
        before = number(counts, "fake_batched"), number(counts, "fake_grouped")
        Products([member] * 6, dtype, 1).check(GroupedCall([member] * 6, dtype=dtype, ordinal=0), stream, 2.0, 3.0)
        assert (number(counts, "fake_batched"), number(counts, "fake_grouped")) == (before[0] + 1, before[1])


def check_addresses(stream: int, other: int, driver: ctypes.CDLL) -> None:
    """Write a list once for each stream as long as it lies there, and again when it was overwritten."""
    rng = np.random.default_rng(1)
    members = [drawn(rng) for _ in range(300)]
    call = GroupedCall(members, dtype="float32", ordinal=0)
    lists = [Products(members, "float32", seed) for seed in range(2 * MOST_ADDRESSES // 900)]
    for _ in range(2):
        for each in lists:
            before = number(driver, "fake_writes")
            for again in (False, True):
                each.check(call, stream)
                written = number(driver, "fake_writes") - before
                assert written == 2, (written, again)
    before = number(driver, "fake_writes")
    lists[-1].check(call, other)
    assert number(driver, "fake_writes") == before + 2


def check_many(stream: int, counts: ctypes.CDLL) -> None:
    """Do more products than fit in one call, in several."""
    rng = np.random.default_rng(2)
    members = [drawn(rng)._replace(k=1, ld_left=9, ld_right=9) for _ in range(MOST_PRODUCTS + 5)]
    before = number(counts, "fake_grouped")
    Products(members, "float32", 3).check(GroupedCall(members, dtype="float32", ordinal=0), stream)
    assert number(counts, "fake_grouped") == before + 2


def check_streams() -> None:
    """Keep memory for a bounded number of streams."""
    cuda, members = library.driver(), [drawn(np.random.default_rng(3)) for _ in range(4)]
    call, products = GroupedCall(members, dtype="float64", ordinal=0), Products(members, "float64", 4)
    products.check(call, 0)
    streams = [int(cuda.cuStreamCreate(1)[1]) for _ in range(80)]
    for stream in streams:
        products.check(call, stream)
    held = grouped_call._pointers[0]._rings
    assert len(held) == 64
    assert {stream for _, stream in held} == set(streams[-64:])
    for stream in streams:
        products.check(call, stream)


def check_refusals(stream: int, counts: ctypes.CDLL) -> None:
    """Say what the library does not do, and tell its reason when it refuses."""
    member = Member(False, False, 2, 2, 2, 2, 2, 2)
    for dtype in ("complex64", "float8_e4m3fn", "int8"):
        with pytest.raises(KernelUnavailableError, match=f"no groups of {dtype}; allowed: bfloat16"):
            GroupedCall([member], dtype=dtype, ordinal=0)
    members = [member, member._replace(m=3)]
    call, products = GroupedCall(members, dtype="float32", ordinal=0), Products(members, "float32", 5)
    status = ctypes.c_int.in_dll(counts, "fake_status")
    status.value = 15
    with pytest.raises(LaunchError, match="did not launch a group"):
        products.check(call, stream)
    status.value = 0
    products.check(call, stream)


def number(loaded: ctypes.CDLL, name: str) -> int:
    """Return one of a stand-in's counters."""
    return ctypes.c_long.in_dll(loaded, name).value


def main(folder: Path) -> None:
    """Load the stand-ins and check everything."""
    driver, _, cublas = (
        ctypes.CDLL(str(folder / name)) for name in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13")
    )
    setattr(compiling, "machine_code", lambda *_: b"code")  # noqa: B010 - it is no plain function
    assert library.available() is None
    first, second = (int(library.driver().cuStreamCreate(1)[1]) for _ in range(2))
    check_values(first, cublas)
    check_uniform(first, cublas)
    check_addresses(first, second, driver)
    check_many(first, cublas)
    check_refusals(first, cublas)
    check_streams()
    assert memory.live_bytes() < 100 << 25, "one workspace for each stream, and not more"
    print("checked")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
