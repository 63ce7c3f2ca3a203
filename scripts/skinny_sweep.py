"""Times the skinny kernels over the decode shapes beside cuBLASLt's best of 8 and the copy bandwidth, and checks them.

`python scripts/skinny_sweep.py RESULT.json` prints the best three configurations of each shape, in microseconds, as
bandwidth of weight, x and result, and as speed-up over the best of the library's list; the file has every
configuration that was timed. All kernels are compiled beforehand, on all cores, into the user's cache of kernels.

`--questions` times three shapes instead, in less than a minute: whether rings that copy longer runs of a row read large
weights faster, and whether weights stored as (k, n) do with a ring, or with the warps that more shared memory allows.
"""  # noqa: INP001 - a script, no package

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from skinny_cases import FURTHER, QUESTIONS, asked, chosen, decode_problems, posed, random_cases

from tensorplay.backends.base import Plan
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.compiler import machine_code
from tensorplay.backends.cublaslt.cubin_cache import CubinCache, cache_folder
from tensorplay.backends.cublaslt.device import current, device
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.memory import device_buffer
from tensorplay.backends.cublaslt.scratch import set_bytes
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.plan import skinny_plan
from tensorplay.backends.cublaslt.skinny.shape import skinny_shape
from tensorplay.backends.cublaslt.skinny.source_text import source_text
from tensorplay.backends.cublaslt.status import check
from tensorplay.backends.cublaslt.stream import Event, private_stream, synchronize
from tensorplay.backends.cublaslt.trial import CudaTrial, cuda_trial
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem, SourceKernelId, parse_kernel_id

DECODE = Path(__file__).resolve().parents[1] / "benchmark" / "shapes_decode.json"
CAPABILITY = (9, 0)
FINALISTS, ROUNDS = 4, 9


def compiled(source: str) -> str | None:
    """Compile a source into the cache and return why it does not compile; runs in a process of its own."""
    try:
        machine_code(source, CAPABILITY, CubinCache(cache_folder(os.environ)))
    except (KernelUnavailableError, LaunchError) as error:
        return str(error)
    return None


def compile_all(sources: Sequence[str], limit_s: float) -> None:
    """Compile on all cores, as many as there is time for."""
    start, done = time.perf_counter(), 0
    with ProcessPoolExecutor() as pool:
        for future in as_completed([pool.submit(compiled, source) for source in sources]):
            reason = future.result() if not future.cancelled() else None
            done += not future.cancelled()
            if reason:
                print(f"does not compile: {reason[:2000]}")
            if time.perf_counter() - start > limit_s:
                pool.shutdown(cancel_futures=True)
                break
    print(f"compiled {done} of {len(sources)} kernels in {time.perf_counter() - start:.1f} s", flush=True)


def copy_bandwidth() -> float:
    """Return bytes read and written a second by a copy on the device, in TB/s."""
    nbytes, times = 1 << 30, []
    stream, cuda = private_stream(0), driver()
    with current(0), device_buffer(0, 2 * nbytes) as buffer:
        for _ in range(12):
            start, end = Event(), Event()
            start.record(stream)
            for _ in range(4):
                check(cuda.cuMemcpyDtoDAsync(buffer.address + nbytes, buffer.address, nbytes, stream), "copying")
            end.record(stream)
            synchronize(stream)
            times.append(end.milliseconds_since(start) / 4)
            start.close()
            end.close()
    return 2 * nbytes / median(times) / 1e9


def checked(cases: Sequence[tuple[GemmProblem, Configuration]]) -> int:
    """Compare results with float64, and with themselves; return how many are wrong."""
    wrong = 0
    for problem, configuration in cases:
        try:
            plan = skinny_plan(problem, configuration)
            with cuda_trial(problem, rotating_bytes=0) as trial:
                found, again, expected = trial.output(plan), trial.output(plan), trial.reference()
        except (KernelUnavailableError, LaunchError) as error:
            wrong += 1
            print(f"FAIL {problem}: {error}", flush=True)
            continue
        roundoff = (problem.out_dtype or problem.dtype).unit_roundoff
        off = np.abs(found - expected) - 2 * roundoff * np.abs(expected)
        limit = 2.0**-20 * problem.k + roundoff * 2.0**-4
        if not (off <= limit).all() or not np.array_equal(found, again):
            wrong += 1
            print(f"WRONG by {np.nanmax(off)} (limit {limit}): {configuration.kernel_id} for {problem}", flush=True)
    return wrong


def screened(trial: CudaTrial, plans: Sequence[Plan]) -> list[tuple[float, Plan]]:
    """Return the plans with their times behind a spin, in microseconds, the fastest first."""
    timed = []
    for plan in plans:
        try:
            trial.timer.warm_up(plan)
            timed.append((trial.timer.screen(plan, 8) * 1e3, plan))
        except LaunchError as error:
            print(f"FAIL {plan.kernel}: {str(error)[:300]}", flush=True)
    timed.sort(key=lambda each: each[0])
    first = [(min(us, trial.timer.screen(plan, 8) * 1e3), plan) for us, plan in timed[: 4 * FINALISTS]]
    return sorted(first, key=lambda each: each[0]) + timed[4 * FINALISTS :]


def _skinny(kernel: str) -> SourceKernelId:
    kernel_id = parse_kernel_id(kernel)
    if not isinstance(kernel_id, SourceKernelId):
        raise TypeError(kernel)
    return kernel_id


def _waiting(plan: Plan) -> Plan:
    return skinny_plan(plan.problem, Configuration.of(_skinny(plan.kernel)), is_overlapping=False)


def timed_shape(problem: GemmProblem, configurations: Sequence[Configuration], bandwidth: float) -> dict[str, Any]:
    """Time one shape and print its line."""
    backend = CublasLtBackend()
    library = list(backend.library_choices(problem))
    ours = []
    for configuration in configurations:
        try:
            ours.append(skinny_plan(problem, configuration))
        except KernelUnavailableError as error:
            print(f"FAIL {error}", flush=True)
    item = problem.dtype.itemsize
    nbytes = item * (problem.m * problem.k + problem.n * problem.k + problem.m * problem.n)
    with cuda_trial(problem, rotating_bytes=2 * device(0).l2_bytes + set_bytes(problem)) as trial:
        of_library, of_ours = screened(trial, library), screened(trial, ours)
        leading = [plan for _, plan in of_ours[:FINALISTS]]
        # The same without beginning before the kernel ahead has ended.
        waiting = {_waiting(plan): plan for plan in leading[:2]}
        final = list(dict.fromkeys([library[0], *(plan for _, plan in of_library[:2]), *leading, *waiting]))
        samples: dict[Plan, list[float]] = {plan: [] for plan in final}
        for turn in range(ROUNDS):
            order = final if turn % 2 == 0 else final[::-1]
            for plan, ms in zip(order, trial.timer.sample(order), strict=True):
                samples[plan].append(ms * 1e3)
    times = {plan: median(each) for plan, each in samples.items()}
    best_library = min(us for plan, us in times.items() if plan in library)
    best = sorted((times[plan], plan.kernel) for plan in leading)[:3]
    alone = {plan.kernel: times[each] for each, plan in waiting.items()}
    name = f"{problem.dtype.name} {problem.m}x{problem.n}x{problem.k}{'' if problem.transpose_right else ' (k,n)'}"
    print(f"{name}: first {times[library[0]]:.2f} best of 8 {best_library:.2f} us", flush=True)
    for us, kernel in best:
        rate = nbytes / us / 1e6
        print(f"    {us:7.2f} us {rate:.2f} TB/s {rate / bandwidth:4.0%} x{best_library / us:.3f} {kernel}"
            f"{f' (not overlapping {alone[kernel]:.2f})' if kernel in alone else ''}", flush=True)  # fmt: skip
    return {
        "problem": name,
        "m": problem.m,
        "n": problem.n,
        "k": problem.k,
        "nbytes": nbytes,
        "first_us": times[library[0]],
        "best_of_8_us": best_library,
        "best_us": best[0][0],
        "best": best,
        "not_overlapping": alone,
        "screened": [(us, plan.kernel) for us, plan in of_ours],
        "library": [(us, plan.kernel) for us, plan in of_library],
    }


def kept(rows: Sequence[dict[str, Any]]) -> str:
    """Return the times of the fastest configurations and some others, with their attributes, a line for each shape."""
    lines = []
    for row in rows:
        times = [[round(us, 3), *dict(_skinny(kernel).options).values()] for us, kernel in row["screened"]]
        sizes = {name: row[name] for name in ("problem", "m", "n", "k")}
        lines.append(json.dumps({**sizes, "times": times[:60] + times[60::3]}, separators=(",", ":")))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> int:
    """Compile, check, time; return how many results were wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("--shapes", type=Path, default=DECODE)
    parser.add_argument("--cases", type=int, default=150, help="random problems to check")
    parser.add_argument("--compile-seconds", type=float, default=60.0)
    parser.add_argument("--questions", action="store_true", help="time what is asked above, and nothing else")
    parser.add_argument("--keep", type=Path, help="also write what the test of the model reads")
    options = parser.parse_args()
    generator = random.Random(0)  # noqa: S311 - the same cases each time
    problems, choose = decode_problems(options.shapes), chosen
    if options.questions:
        problems = [posed(name, m, n, k, transpose_right=turned) for name, m, n, k, turned in QUESTIONS]
        choose = asked
    configurations = [choose(problem, generator) for problem in problems]
    cases = list(random_cases(generator, options.cases))
    jobs = [*cases, *((problem, each) for problem, many in zip(problems, configurations, strict=True) for each in many)]
    compile_all(
        list({source_text(each, skinny_shape(problem)): None for problem, each in jobs}), options.compile_seconds
    )
    wrong = checked(cases)
    print(f"{len(cases) - wrong} of {len(cases)} random products right", flush=True)
    bandwidth = copy_bandwidth()
    print(f"copy {bandwidth:.3f} TB/s", flush=True)
    rows = [timed_shape(problem, many, bandwidth) for problem, many in zip(problems, configurations, strict=True)]
    decode = rows if options.questions else rows[: len(rows) - len(FURTHER)]
    gains = [row["best_of_8_us"] / row["best_us"] for row in decode]
    print(f"decode: geomean {geometric_mean(gains):.3f}, least {min(gains):.3f} over the best of 8")
    options.result.write_text(json.dumps({"copy_tb_s": bandwidth, "rows": rows, "wrong": wrong}, indent=1))
    if options.keep is not None:
        options.keep.write_text(kept(rows))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
