"""Steps: what the library offers, and what it refuses."""

# The names and docstrings of steps are findings' headings, no sentences.
# ruff: noqa: D401

import time

from gpu_steps.common import BACKEND, posed, step
from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt import library
from tensorplay.backends.cublaslt.algorithm import build
from tensorplay.backends.cublaslt.attributes import Capability, get_attribute
from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.heuristics import library_list, wide_list
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import dtype_of_name


@step
def heuristic() -> str:
    """Heuristic, and ids rebuilt to the same 64 bytes."""
    from ctypes import addressof, c_int32  # noqa: PLC0415 - of this step only

    from tensorplay.backends.cublaslt.algorithm import read_kernel_id  # noqa: PLC0415 - likewise
    from tensorplay.backends.cublaslt.attributes import HeuristicResult  # noqa: PLC0415 - likewise
    from tensorplay.backends.cublaslt.descriptors import Preference  # noqa: PLC0415 - likewise

    lines, lt = [], library.cublaslt()
    for problem in (
        posed("float32", 512, 1024, 256),
        posed("float32", 512, 1024, 256, bias=True),
        posed("tf32", 64, 784, 10),
        posed("float64", 512, 512, 512),
        posed("bfloat16", 16, 4096, 4096, transpose_right=True),
        posed("float16", 4096, 4096, 4096, bias=True),
        posed("complex64", 256, 256, 256),
        posed("float8_e4m3fn", 256, 256, 256, transpose_right=True, out_dtype=dtype_of_name("bfloat16")),
        posed("float8_e4m3fn", 256, 256, 256, transpose_right=True),
        posed("float32", 65, 33, 17, alignment=4),
    ):
        operation = Operation(problem)
        with current(0):
            preference = Preference(workspace_bytes=DEFAULT_BYTES, reduction_mask=7, alignment=problem.alignment)
            results, found = (HeuristicResult * 8)(), c_int32()
            parts = (operation.descriptor, operation.a, operation.b, operation.c, operation.d, preference)
            try:
                lt.matmul_algo_get_heuristic(
                    handle_of(0), *(part.handle for part in parts), 8, addressof(results), addressof(found)
                )
            except lt.cuBLASLtError as error:
                lines.append(f"{problem.dtype.name}: {error.status}")
                continue
            same = 0
            for place in range(found.value):
                kernel_id = read_kernel_id(addressof(results) + 96 * place)
                try:
                    same += (
                        build(handle_of(0), operation, kernel_id, ceiling=DEFAULT_BYTES).opaque
                        == bytes(results)[96 * place : 96 * place + 64]
                    )
                except KernelUnavailableError as error:
                    lines.append(str(error))
        lines.append(f"{problem.dtype.name} {same} of {found.value}")
    return "; ".join(lines)


@step
def capabilities() -> str:
    """What algorithms say of alignment."""
    lines = []
    for problem in (
        posed("float32", 512, 1024, 256),
        posed("bfloat16", 512, 1024, 256),
        posed("bfloat16", 65, 33, 17, alignment=2),
    ):
        operation = Operation(problem)
        with current(0):
            for kernel_id in library_list(handle_of(0), operation, workspace_bytes=DEFAULT_BYTES)[:4]:
                algorithm = build(handle_of(0), operation, kernel_id, ceiling=DEFAULT_BYTES)
                getter = library.cublaslt().matmul_algo_cap_get_attribute
                splits = get_attribute(getter, algorithm.address, Capability.SPLITK_SUPPORT)
                lines.append(f"{problem.dtype.name} id{kernel_id.id}: {algorithm.alignment} (split-k {splits})")
    return "; ".join(lines)


@step
def wide() -> str:
    """Wide union: how many, how long, how many rebuild."""
    lines = []
    for problem in (
        posed("float32", 16, 4096, 1024),
        posed("bfloat16", 64, 14336, 4096, transpose_right=True),
        posed("float16", 4096, 4096, 4096, bias=True),
        posed("float32", 64, 784, 10),
    ):
        operation = Operation(problem)
        with current(0):
            start = time.perf_counter()
            kernel_ids = list(wide_list(handle_of(0), operation, workspace_bytes=DEFAULT_BYTES))
            asked = time.perf_counter()
        plans = list(BACKEND.candidates(problem, CandidateQuery()))
        lines.append(
            f"{problem.dtype.name} {len(kernel_ids)} ids in {(asked - start) * 1e3:.1f} ms, {len(plans)} plans "
            f"in {(time.perf_counter() - asked) * 1e3:.1f} ms"
        )
    return "; ".join(lines)


@step
def stale_ids() -> str:
    """Stale kernel ids are refused."""
    problem, refused = posed("float32", 512, 1024, 256), []
    for kernel in (
        "lt_id9999_tile1_stages1_splitk1_red0_swizzle0_custom0_inner0_cluster0",
        "lt_id66_tile99999_stages35_splitk1_red0_swizzle0_custom0_inner0_cluster2",
        "lt_id0_tile20_stages20_splitk1_red0_swizzle0_custom999_inner0_cluster0",
        "lt_id13_tile0_stages0_splitk1_red0_swizzle0_custom0_inner0_cluster0",
    ):
        try:
            plan = BACKEND.rebuild(problem, kernel)
            refused.append(f"{plan.kernel[:12]} ACCEPTED")
        except KernelUnavailableError as error:
            refused.append(str(error)[-60:])
    return "; ".join(refused)
