"""Lets a second group come in the middle of one, at each of its lines; run by `test_grouped.py`.

As a signal handler that multiplies does: on the same thread, between any two instructions of Python's.
"""

import ctypes
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tensorplay.backends.cublaslt import classic_handle, compiling, grouped_call, library, pointer_arrays
from tensorplay.backends.cublaslt.grouped_call import GroupedCall
from tensorplay.backends.cublaslt.member import Member

FILES = frozenset(f"{name}.py" for name in ("grouped_call", "pointer_arrays", "address_ring", "classic_handle"))
MEMBERS = tuple(Member(False, False, m, 7, 9, 9, 7, 7) for m in (1, 5, 5, 3))
# These are programs: their folder is where Python looks for it.
Interruption: Any = import_module("interruption").Interruption


class Products:
    """Operands of the products, with factors of their own."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.alpha = seed + 0.5
        self.left = [self._placed(each.m, each.k) for each in MEMBERS]
        self.right = [self._placed(each.k, each.n) for each in MEMBERS]
        self.out = [self._placed(each.m, each.n) for each in MEMBERS]

    def _placed(self, rows: int, columns: int) -> Any:
        memory = np.zeros(rows * columns + 4, np.float32)
        first = -memory.ctypes.data % 16 // 4
        placed = memory[first : first + rows * columns].reshape(rows, columns)
        placed[...] = self.rng.uniform(-1, 1, placed.shape)
        return placed

    def run(self, call: GroupedCall, stream: int) -> None:
        """Run them."""
        operands = [[array.ctypes.data for array in each] for each in (self.left, self.right, self.out)]
        call.run(*operands, self.alpha, 0.0, stream=stream)

    def check(self) -> None:
        """Check the results, and take them away."""
        for left, right, out in zip(self.left, self.right, self.out, strict=True):
            np.testing.assert_allclose(out, self.alpha * left @ right, atol=1e-5)
            out[...] = np.nan


def interrupted(at: int, stream: int, *, warm: bool) -> int:
    """Interrupt a group at a line by others on its own stream; return how many lines it has."""
    classic_handle._handles.clear()
    grouped_call._pointers.clear()
    call = GroupedCall(MEMBERS, dtype="float32", ordinal=0)
    outer, inner = Products(1), [Products(seed) for seed in range(2, 5)]
    if warm:
        for each in (outer, inner[0]):
            each.run(call, stream)
            each.check()

    def handler() -> None:
        for each in inner:
            each.run(call, stream)

    interruption = Interruption(at, handler, FILES)
    interruption.during(lambda: outer.run(call, stream))
    outer.check()
    if at <= interruption.lines:
        for each in inner:
            each.check()
    outer.run(call, stream)
    outer.check()
    return int(interruption.lines)


def main(folder: Path) -> None:
    """Load the stand-ins, and interrupt a group at each of its lines."""
    for name in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13"):
        ctypes.CDLL(str(folder / name))
    setattr(compiling, "machine_code", lambda *_: b"code")  # noqa: B010 - it is no plain function
    stream = int(library.driver().cuStreamCreate(1)[1])
    # Room for little more than one list, so that lists give way to each other all the time.
    for capacity in (pointer_arrays.MOST_ADDRESSES, 5 * len(MEMBERS)):
        pointer_arrays.MOST_ADDRESSES = capacity
        for warm in (False, True):
            lines, at = 1, 0
            while at <= lines:
                at += 1
                lines = interrupted(at, stream, warm=warm)
            assert lines > 20, lines
    print("checked")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
