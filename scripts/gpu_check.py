"""Checks the NVIDIA backend on this machine step by step, going on after failures: one run tells all that is wrong.

`python scripts/gpu_check.py` prints one line a step; `--verbose` adds the traceback of each failure.
"""

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt import addend, fill, gemv_source, graph, library, memory, spin, stream
from tensorplay.backends.cublaslt.algorithm import build, capability, required_alignment
from tensorplay.backends.cublaslt.attributes import Capability, verify_sizes
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.descriptors import live_descriptors
from tensorplay.backends.cublaslt.device import current, device, device_count
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.heuristics import library_list, wide_list
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.backends.cublaslt.nvrtc import compile_source
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.scalars import scalars
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.measure.budget import Budget
from tensorplay.measure.numerics import agree
from tensorplay.runtime.tuner import TuningRules, measure

STEPS: list[tuple[str, Callable[[], str]]] = []
BACKEND = CublasLtBackend()


def step(function: Callable[[], str]) -> Callable[[], str]:
    """Add a step; its docstring is its name, what it returns its finding."""
    STEPS.append(((function.__doc__ or function.__name__).rstrip("."), function))
    return function


def posed(name: str, m: int, n: int, k: int, **further: Any) -> GemmProblem:
    """Return a problem on device 0."""
    dtype = dtype_of_name(name)
    if dtype is None:
        raise ValueError(f"{name} is no data type")
    return GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0", **further)


def microseconds(call: Callable[[], object], count: int = 2000) -> float:
    """Return the host time of one call, the best of five rounds."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


@step
def packages() -> str:
    """Packages."""
    found = []
    for name in ("torch", "nvmath-python", "cuda-bindings", "cuda-core", "cuda-pathfinder", "nvidia-cublas", "numpy"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} MISSING")
    return ", ".join(found)


@step
def availability() -> str:
    """Available."""
    reason = library.available()
    if reason:
        raise RuntimeError(reason)
    return "yes"


@step
def loading() -> str:
    """Library."""
    start = time.perf_counter()
    version = library.library_version()
    return f"{library.library_identity()}, version {version}, first import {time.perf_counter() - start:.2f} s"


@step
def devices() -> str:
    """Device."""
    here = device(0)
    return f"{device_count()} x {here.name} {here.capability}, L2 {here.l2_bytes >> 20} MiB, {here.free_bytes >> 20} MiB free"


@step
def attribute_sizes() -> str:
    """Attribute sizes."""
    verify_sizes()
    return "as known"


@step
def handles() -> str:
    """Handle."""
    start = time.perf_counter()
    handle_of(0)
    return f"{(time.perf_counter() - start) * 1e3:.1f} ms"


@step
def kernels() -> str:
    """Our kernels compile."""
    start = time.perf_counter()
    sources = [spin.SOURCE, *fill.SOURCES.values(), *gemv_source.SOURCES.values(), *addend.SOURCES.values()]
    sizes = [len(compile_source(source, device(0).capability)) for source in sources]
    return f"{len(sizes)} sources, {sum(sizes)} bytes, {time.perf_counter() - start:.2f} s"


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
                splits = capability(algorithm, Capability.SPLITK_SUPPORT)
                lines.append(
                    f"{problem.dtype.name} id{kernel_id.id}: {required_alignment(algorithm)} (split-k {splits})"
                )
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


def _worst(problem: GemmProblem) -> str:
    plans = [BACKEND.first_choice(problem), *BACKEND.candidates(problem, CandidateQuery(breadth="heuristic"))]
    fixed = BACKEND.fixed_dispatch(problem)
    if fixed.kernel == "Default":
        plans.append(fixed)
    bad = []
    with BACKEND.open_trial(problem, rotating_bytes=0) as trial:
        for plan in plans:
            try:
                found = trial.output(plan)
            except Exception as error:
                bad.append(f"{plan.kernel}: {error}")
                continue
            verdict = agree(found, trial.reference(), trial.reference, dtype=problem.dtype, k=problem.k)
            if not verdict.ok:
                bad.append(f"{plan.kernel}: {verdict.reason}")
    if bad:
        raise AssertionError(f"{problem}: {bad[:3]}")
    return f"{len(plans)}"


@step
def values() -> str:
    """Values of every type against float64."""
    counts = []
    failed = []
    bfloat16 = dtype_of_name("bfloat16")
    for name in ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128"):
        plain = posed(name, 65, 48, 97, alignment=16)
        for problem in (
            plain,
            replace(plain, transpose_right=True),
            replace(plain, transpose_left=True, ld_left=80, ld_right=64, ld_out=56),
            replace(plain, accumulate=True),
            replace(plain, batch=3),
            replace(plain, m=1, transpose_right=True),
            replace(plain, m=1),
            replace(plain, n=1),
            replace(plain, n=1, transpose_left=True),
            replace(plain, alignment=plain.dtype.itemsize // (2 if plain.dtype.is_complex else 1)),
            *(() if plain.dtype.is_complex else (replace(plain, bias=True), replace(plain, activation="relu"))),
            *(() if plain.dtype.is_complex else (replace(plain, bias=True, activation="gelu"),)),
        ):
            try:
                counts.append(_worst(problem))
            except Exception as error:
                failed.append(f"{type(error).__name__}: {error}")
    for out in (bfloat16, None):
        try:
            problem = posed("float8_e4m3fn", 64, 64, 128, transpose_right=True, out_dtype=out)
            with BACKEND.open_trial(problem, rotating_bytes=0) as trial:
                found, exact = trial.output(BACKEND.first_choice(problem)), trial.reference()
                worst = float(np.abs(found - exact).max() / np.abs(exact).max())
                counts.append(f"fp8 {worst:.2g}")
        except Exception as error:
            failed.append(f"FP8: {error}")
    if failed:
        raise AssertionError(f"{len(failed)} failed, {len(counts)} passed: " + " | ".join(failed[:6]))
    return f"{len(counts)} problems, {counts[-2:]}"


@step
def timing() -> str:
    """Timer repeats."""
    lines = []
    for problem in (
        posed("float32", 512, 1024, 256),
        posed("bfloat16", 16, 4096, 4096),
        posed("bfloat16", 4096, 4096, 4096),
    ):
        with BACKEND.open_trial(problem, rotating_bytes=BACKEND.default_rotating_bytes("0")) as trial:
            plan = BACKEND.first_choice(problem)
            trial.timer.warm_up(plan)
            screened = [trial.timer.screen(plan, 4) * 1e3 for _ in range(5)]
            start = time.perf_counter()
            samples = np.array(trial.timer.sample([plan] * 8)) * 1e3
            took = time.perf_counter() - start
            captured = graph.live_graphs()
        spread = (samples.max() - samples.min()) / np.median(samples)
        lines.append(
            f"{problem.dtype.name} {problem.m}x{problem.n}x{problem.k}: screen {min(screened):.2f}-{max(screened):.2f} us, "
            f"sample {np.median(samples):.2f} us spread {spread:.2%}, 8 in {took * 1e3:.1f} ms, graphs {captured}"
        )
    return "; ".join(lines)


@step
def tuning() -> str:
    """A whole measurement."""
    lines = []
    for problem in (posed("float32", 16, 4096, 1024), posed("tf32", 64, 784, 10), posed("bfloat16", 256, 4096, 14336)):
        rules = TuningRules(
            query=CandidateQuery(),
            budget=Budget(max_duration_ms=30, max_samples=100, warmup_duration_ms=0, warmup_samples=0),
            min_gain=0.02,
            check=True,
            tolerance=None,
            rotating_bytes=BACKEND.default_rotating_bytes("0"),
        )
        start = time.perf_counter()
        found = measure(BACKEND, problem, rules)
        took = time.perf_counter() - start
        timed, entry = found.report.to_dict(), found.entry
        lines.append(
            f"{problem.dtype.name} {problem.m}x{problem.n}x{problem.k}: {entry.kernel} {entry.time_ms * 1e3:.2f} us, "
            f"{timed['verdict']}, {len(timed['candidates'])} candidates in {took * 1e3:.0f} ms"
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


@step
def capturing() -> str:
    """Capture by torch: seen, resolved, run, replayed."""
    import torch

    problem = posed("float32", 256, 256, 256)
    torch.manual_seed(0)
    left, right, out = (torch.randn(256, 256, device="cuda") for _ in range(3))
    pointers = (left.data_ptr(), right.data_ptr(), out.data_ptr())
    plan = BACKEND.first_choice(problem)
    plan.run(*pointers, stream=torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    eager = out.clone()
    out.zero_()
    findings: dict[str, object] = {"eager": BACKEND.is_capturing(torch.cuda.current_stream().cuda_stream)}
    fresh = replace(problem, m=128)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        here = torch.cuda.current_stream().cuda_stream
        findings["seen"] = BACKEND.is_capturing(here)
        findings["seen without stream"] = BACKEND.is_capturing(None)
        findings["first choice under capture"] = BACKEND.first_choice(fresh).kernel[:14]
        try:
            findings["rebuild under capture"] = CublasLtBackend().rebuild(problem, plan.kernel).kernel == plan.kernel
        except Exception as error:
            findings["rebuild under capture"] = str(error)
        plan.run(*pointers, stream=here)
    captured.replay()
    torch.cuda.synchronize()
    findings["replay bit-identical"] = bool(torch.equal(out, eager))
    plan.run(*pointers, stream=torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    findings["eager again"] = bool(torch.equal(out, eager))
    return ", ".join(f"{name}: {value}" for name, value in findings.items())


@step
def host_cost() -> str:
    """Host cost of a launch."""
    import torch

    problem = posed("float32", 64, 64, 64)
    left, right, out = (torch.randn(64, 64, device="cuda") for _ in range(3))
    a, b, c = left.data_ptr(), right.data_ptr(), out.data_ptr()
    plan, operation, numbers = BACKEND.first_choice(problem), Operation(problem), scalars(0)
    run, matmul, handle = plan.run, library.cublaslt().matmul, handle_of(0)
    with current(0):
        kernel_id = library_list(handle, operation, workspace_bytes=0)[0]
        algorithm = build(handle, operation, kernel_id, ceiling=0)
    parts = (operation.descriptor.handle, operation.a.handle, operation.b.handle, operation.c.handle)

    def bare() -> None:
        matmul(
            handle, parts[0], numbers.one, b, parts[1], a, parts[2], numbers.zero, c, parts[3], c, parts[3],
            algorithm.address, 0, 0, 0,
        )  # fmt: skip

    costs = {
        "plan.run": lambda: run(a, b, c, 0, 0, 1.0, 0.0, 0),
        "bare matmul": bare,
        "torch.mm(out=)": lambda: torch.mm(left, right, out=out),
        "is_capturing": lambda: BACKEND.is_capturing(0),
    }
    found = []
    for name, call in costs.items():
        torch.cuda.synchronize()
        found.append(f"{name} {microseconds(call, 200):.2f} us")
    return ", ".join(found)


@step
def leaks() -> str:
    """Leaks after 50 shapes."""
    BACKEND.forget_plans()
    plan = BACKEND.first_choice(posed("float32", 8, 8, 8))
    before, descriptors = device(0).free_bytes, sum(live_descriptors().values())
    for size in range(50):
        problem = posed("float32", 64 + 8 * size, 128, 96)
        with BACKEND.open_trial(problem, rotating_bytes=8 << 20) as trial:
            for each in (
                BACKEND.first_choice(problem),
                *BACKEND.candidates(problem, CandidateQuery(breadth="heuristic")),
            ):
                trial.timer.warm_up(each)
                trial.timer.sample([each])
    del each, plan
    BACKEND.forget_plans()
    lost = (before - device(0).free_bytes) / 2**20
    return (
        f"{lost:.1f} MiB, {sum(live_descriptors().values()) - descriptors} descriptors, "
        f"{stream.live_events()} events, {graph.live_graphs()} graphs, ours {memory.live_bytes() >> 20} MiB"
    )


@step
def buffers() -> str:
    """Plain memory."""
    buffer = DeviceBuffer(0, 1 << 20)
    buffer.free()
    return f"address aligned to {buffer.address & -buffer.address}"


def main() -> int:
    """Run every step and return the number that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true")
    verbose = parser.parse_args().verbose
    warnings.simplefilter("ignore")
    failed = 0
    for name, function in STEPS:
        start = time.perf_counter()
        try:
            mark, finding = "ok  ", function()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next step is to be tried
            mark, finding = "FAIL", f"{type(error).__name__}: {error}"
            failed += 1
            if verbose:
                traceback.print_exc()
        print(f"{mark} {name} [{time.perf_counter() - start:.1f} s]: {finding}", flush=True)
    print(f"{len(STEPS) - failed} of {len(STEPS)} steps passed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
