"""Neighbours on a library whose capabilities and refusals are scripted, over the stand-in that multiplies on the host.

The names of tiles are those of the real bindings, which know them without a device.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "stand_in"

# Algorithm 1 has everything; 2 has no tiles and splits nothing; 3 does not multiply such numbers. Of 1, clusters other
# than 2 and 3 are refused, and odd custom options with tile 15.
SCRIPTED = r"""
#define cublasLtMatmulAlgoCapGetAttribute plain_capability
#define cublasLtMatmulAlgoCheck plain_check
#define cublasLtMatmulAlgoInit plain_init
#include "cublaslt.c"
#undef cublasLtMatmulAlgoCapGetAttribute
#undef cublasLtMatmulAlgoCheck
#undef cublasLtMatmulAlgoInit
static const unsigned TILES[] = {11, 15, 18, 20}, STAGES[] = {8, 35};
int checks_made = 0;
static int listed(const unsigned *values, size_t bytes, void *buffer, size_t size, size_t *written)
{
    *written = bytes;
    if (size == 0) return 0;
    if (size < bytes) return 7;
    memcpy(buffer, values, bytes);
    return 0;
}
int cublasLtMatmulAlgoCapGetAttribute(Algo *algo, int which, void *buffer, size_t size, size_t *written)
{
    const int has_all = algo->id == 1;
    if (which == 6) return listed(TILES, has_all ? sizeof(TILES) : 0, buffer, size, written);
    if (which == 13) return listed(STAGES, has_all ? sizeof(STAGES) : 0, buffer, size, written);
    if (which >= 16) return plain_capability(algo, which, buffer, size, written);
    *written = 4;
    if (size != 4) return size == 0 ? 0 : 7;
    switch (which) {
        case 0: *(int *)buffer = has_all; return 0;
        case 1: *(unsigned *)buffer = has_all ? 7 : 0; return 0;
        case 2: *(unsigned *)buffer = has_all; return 0;
        case 7: *(int *)buffer = has_all ? 3 : 0; return 0;
    }
    return 7;
}
int cublasLtMatmulAlgoInit(void *h, int c, int s, int at, int bt, int ct, int dt, int id, Algo *algo)
{
    return id == 3 ? 15 : plain_init(h, c, s, at, bt, ct, dt, id, algo);
}
int cublasLtMatmulAlgoCheck(void *h, Desc *d, Lay *A, Lay *B, Lay *C, Lay *D, Algo *algo, Res *result)
{
    checks_made++;
    if (algo->id == 1 && (algo->cluster != 2 && algo->cluster != 3)) return 15;
    if (algo->id == 1 && algo->tile == 15 && algo->custom % 2) return 15;
    return plain_check(h, d, A, B, C, D, algo, result);
}
"""

CHECK = r"""
import ctypes
import sys
from dataclasses import replace
from pathlib import Path

folder = Path(sys.argv[1])
libraries = [ctypes.CDLL(str(folder / n)) for n in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13")]
made = ctypes.c_int.in_dll(libraries[1], "checks_made")

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.capabilities import Capabilities, algorithm_ids, capabilities_of, tile_size
from tensorplay.backends.cublaslt.neighbours import neighbour_algorithms
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.gemm import GemmProblem, LtKernelId, dtype_of_name

MIB = 1 << 20


def posed(name="float32", **further):
    return GemmProblem(dtype=dtype_of_name(name), device="0", m=5, n=7, k=9, **further)


operation = Operation(posed())
types = operation.types
assert algorithm_ids(0, types) == (1, 2, 3, 4, 5)
assert capabilities_of(0, types, 1) == Capabilities((11, 15, 18, 20), (8, 35), True, 7, True, 3)
assert capabilities_of(0, types, 2) == Capabilities()
assert capabilities_of(0, types, 3) is None
assert [tile_size(tile) for tile in (0, 20, 18, 394, 99999)][1:3] == [(128, 128), (128, 64)]
assert tile_size(99999) is None

at = LtKernelId(1, 20, 35, 1, 0, 0, 0, 0, 2)
found = [each.kernel_id for each in neighbour_algorithms(operation, at, ceiling=32 * MIB)]
assert at not in found and len(set(found)) == len(found)
assert all(each.cluster in (2, 3) and not (each.tile == 15 and each.custom % 2) for each in found if each.id == 1)
assert {each.id for each in found} == {1, 2, 4, 5}, "other algorithms are neighbours too"
assert sorted(found, key=lambda each: each.id != 1) == found, "those of the same algorithm come first"
assert {each.splitk for each in found} >= {1, 2, 3, 32} and {each.red for each in found} == {0, 1, 2, 4}

before = made.value
assert [each.kernel_id for each in neighbour_algorithms(operation, at, ceiling=32 * MIB)] == found
assert made.value == before, "what was checked for an operation is not checked again"
lazy = neighbour_algorithms(Operation(posed()), at, ceiling=32 * MIB)
next(lazy)
assert made.value - before <= 3, "neighbours are checked when they are asked for"

small = [each for each in neighbour_algorithms(operation, at, ceiling=4 * MIB)]
assert small and all(each.workspace_bytes <= 4 * MIB for each in small)
assert len(small) < len(found)

split = LtKernelId(1, 20, 35, 4, 2, 0, 0, 0, 2)
fixed = [each.kernel_id for each in neighbour_algorithms(operation, split, ceiling=32 * MIB, deterministic=True)]
assert fixed[0] == at and {(each.splitk, each.red) for each in fixed} == {(1, 0)}, "no sum is split"
half = Operation(posed("float16"))
assert {each.kernel_id.red for each in neighbour_algorithms(half, split, ceiling=32 * MIB)} == {0, 2}, "none is rounded"

# What was refused again and again comes last, also for other operations.
other = Operation(posed(transpose_right=True))
order = [each.kernel_id for each in neighbour_algorithms(other, at, ceiling=32 * MIB)]
assert set(order) == set(found)
for tile in (11, 18):
    for swizzle in (0, 1):
        assert list(neighbour_algorithms(other, replace(at, tile=tile, swizzle=swizzle), ceiling=32 * MIB))
before = made.value
fresh = Operation(posed(bias=True))
first = [each.kernel_id for each, _ in zip(neighbour_algorithms(fresh, at, ceiling=32 * MIB), range(20))]
assert made.value - before <= 24, f"{made.value - before} checks for 20 neighbours"

backend = CublasLtBackend()
problem = posed()
plan = Plan(problem, str(at), lambda *_: None)
plans = list(backend.neighbours(problem, plan, CandidateQuery(breadth="search")))
assert {each.kernel for each in plans} <= {str(each) for each in found}
assert all("id5" not in each.kernel for each in plans), "it needs 128 bytes of alignment"
assert not list(backend.neighbours(problem, plan, CandidateQuery(sources=frozenset({"skinny"}))))
print("checked")
"""


@pytest.fixture
def libraries(build_stand_in: Callable[..., Path], tmp_path: Path) -> Path:
    """Return a folder that holds the stand-ins, cuBLASLt's being the scripted one."""
    scripted = tmp_path / "scripted.c"
    scripted.write_text(SCRIPTED)
    sources = {
        FOLDER / "driver.c": "libcuda.so.1",
        scripted: "libcublasLt.so.13",
        FOLDER / "cublas.c": "libcublas.so.13",
    }
    return build_stand_in(tmp_path, sources)


def test_neighbours_are_checked_lazily_once_and_within_what_is_allowed(libraries: Path) -> None:
    root = str(Path(__file__).resolve().parents[3])
    folders = {"LD_LIBRARY_PATH": str(libraries), "PYTHONPATH": root, "XDG_CACHE_HOME": str(libraries)}
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(libraries)],
        env=os.environ | folders,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stdout.strip() == "checked", done.stderr
