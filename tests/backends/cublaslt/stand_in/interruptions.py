"""Lets a second product come in the middle of one, at each of its lines; run by `test_stand_in.py`.

As a signal handler that multiplies does: on the same thread, between any two instructions of Python's.
"""

import ctypes
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tensorplay.backends.cublaslt import classic_handle, compiling, handle, library, memory, workspace
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.gemm import GemmProblem, dtype_of_name

FILES = frozenset(
    f"{name}.py"
    for name in (
        *("call_descriptor", "classic", "classic_handle", "handle", "operation", "plan", "plan_cache"),
        *("scalars", "workspace"),
    )
)
LT = "lt_id3_tile13_stages3_splitk2_red2_swizzle0_custom0_inner0_cluster0"
KERNELS = ("cublas", LT, LT)
STREAM, WORKSPACE = 1, 2
# These are programs: their folder is where Python looks for it.
Interruption: Any = import_module("interruption").Interruption


class Product:
    """A product with a stream, operands and numbers of its own, of a plan that is made when it is run."""

    def __init__(self, problem: GemmProblem, kernel: str, seed: int) -> None:
        self.problem, self.kernel = problem, kernel
        self.stream = int(library.driver().cuStreamCreate(1)[1])
        random = np.random.default_rng(seed)
        self.operands = [random.uniform(-1, 1, shape).astype(np.float32) for shape in ((5, 9), (9, 7), (5, 7))]
        self.alpha, self.beta = seed + 0.5, -float(seed)
        self.bias = np.full(7, 100.0 * seed, np.float32) if problem.bias else None
        left, right, out = (operand.astype(np.float64) for operand in self.operands)
        self.expected = self.alpha * left @ right + self.beta * out + (0.0 if self.bias is None else self.bias)

    def run(self, backend: CublasLtBackend) -> None:
        """Make the plan and run it."""
        addresses = [operand.ctypes.data for operand in self.operands]
        bias = 0 if self.bias is None else self.bias.ctypes.data
        backend.rebuild(self.problem, self.kernel).run(*addresses, 0, bias, self.alpha, self.beta, self.stream)

    def check(self, fake_call: Callable[[int, int], int]) -> int:
        """Check result and stream, and return the workspace."""
        out = self.operands[2]
        np.testing.assert_allclose(out, self.expected, rtol=1e-5, atol=1e-5)
        assert fake_call(out.ctypes.data, STREAM) == self.stream
        return fake_call(out.ctypes.data, WORKSPACE)


def interrupted(
    problem: GemmProblem, kernel: str, at: int, fake_call: Callable[[int, int], int], *, warm: bool, shared: bool
) -> int:
    """Interrupt a product at a line, by one on its own stream if `shared`; return how many lines it has.

    It is the first of all products unless `warm`.
    """
    workspace._workspaces.clear()
    handle._handles.clear()
    classic_handle._handles.clear()
    backend = CublasLtBackend()
    outer, inner = Product(problem, kernel, 1), Product(problem, kernel, 2)
    if warm:
        warming = Product(problem, kernel, 3)
        warming.run(backend)
        warming.check(fake_call)
    if shared:
        inner.stream = outer.stream
    buffers = workspace.workspaces(0)
    for each in (outer, inner):
        buffers.lend(each.stream)
    interruption = Interruption(at, lambda: inner.run(backend), FILES)
    interruption.during(lambda: outer.run(backend))
    if at <= interruption.lines:
        assert outer.check(fake_call) != inner.check(fake_call) or shared
    # Nobody is left with what belongs to another.
    for each in (inner, outer):
        again = Product(problem, kernel, 4)
        again.stream = each.stream
        again.run(backend)
        again.check(fake_call)
    for each in (outer, inner):
        buffers.take_back(each.stream)
    for kept in (*buffers._spares, *buffers._buffers.values()):
        kept.free()
    assert memory.live_bytes() == 0, "a workspace was lost"
    return int(interruption.lines)


def main(folder: Path) -> None:
    """Load the stand-ins, and interrupt each kind of product at each of its lines."""
    logs = [ctypes.CDLL(str(folder / name)) for name in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13")]
    setattr(compiling, "machine_code", lambda *_: b"code")  # noqa: B010 - it is no plain function
    dtype = dtype_of_name("float32")
    assert dtype is not None
    problem = replace(GemmProblem(dtype=dtype, device="0", m=5, n=7, k=9), accumulate=True)
    for kernel, log, bias in zip(KERNELS, (logs[2], logs[1], logs[1]), (False, False, True), strict=True):
        log.fake_call.argtypes, log.fake_call.restype = [ctypes.c_uint64, ctypes.c_int], ctypes.c_uint64
        for warm, shared in product((False, True), repeat=2):
            lines, at = 1, 0
            while at <= lines:
                at += 1
                posed = replace(problem, bias=bias)
                lines = interrupted(posed, kernel, at, log.fake_call, warm=warm, shared=shared)
            assert lines > 5, lines
    print("checked")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
