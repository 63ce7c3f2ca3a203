"""Steps: timer, a whole measurement, host cost, leaks."""

# The names and docstrings of steps are findings' headings, no sentences.
# ruff: noqa: D401

import time
from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gpu_steps.common import BACKEND, microseconds, posed, step
from tensorplay import mm
from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt import graph, library, memory, stream
from tensorplay.backends.cublaslt.algorithm import build
from tensorplay.backends.cublaslt.descriptors import live_descriptors
from tensorplay.backends.cublaslt.device import current, device
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.heuristics import library_list
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.backends.cublaslt.scalars import scalars
from tensorplay.measure.budget import Budget
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.ops.device.torch_guard import guard_name
from tensorplay.ops.device.torch_kind import precision_switch, raw_stream
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context
from tensorplay.runtime.tuner import TuningRules, measure


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
            f"{problem.dtype.name} {problem.m}x{problem.n}x{problem.k}: "
            f"screen {min(screened):.2f}-{max(screened):.2f} us, "
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
        timed: dict[str, Any] = found.report.to_dict()
        entry = found.entry
        lines.append(
            f"{problem.dtype.name} {problem.m}x{problem.n}x{problem.k}: {entry.kernel} {entry.time_ms * 1e3:.2f} us, "
            f"{timed['verdict']}, {len(timed['candidates'])} candidates in {took * 1e3:.0f} ms"
        )
    return "; ".join(lines)


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
def hit_cost() -> str:
    """Host cost of a hit, in parts."""
    import torch

    left, right, out = (torch.randn(64, 64, device="cuda") for _ in range(3))
    tensors = (left, right, out)
    product: Any = mm
    with TemporaryDirectory() as folder, torch.no_grad():
        context = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=folder)
        with use_context(context):
            for _ in range(3):
                product(left, right, out=out)
            torch.cuda.synchronize()
            direct = next((each for each in context.plans.values() if isinstance(each, Direct)), None)
            if direct is None or direct.plan is None:
                return "the hot path was not taken"
            by_address = next((key for key in direct.addresses), None)
            stream_of, precision, run, check = raw_stream(), precision_switch(), direct.run, direct.check
            a, b, c = (tensor.data_ptr() for tensor in tensors)
            current_context = library.driver().cuCtxGetCurrent
            variants = {
                "mm(out=)": direct,
                "mm(out=) without guard": replace(direct, check=_yes),
                "mm(out=) without launch": replace(direct, run=_nothing),
                "mm(out=) without launch, guard, precision": replace(direct, run=_nothing, check=_yes, tf32=None),
            }
            costs: dict[str, Callable[[], object]] = {
                "nothing": lambda: None,
                "plan.run": lambda: run(a, b, c, 0, 0, 1.0, 0.0, 0),
                "guard": lambda: check(left, right, out),
                "stream": lambda: stream_of(0),
                "precision": lambda: precision("cuda", "matmul"),
                "3 data_ptr": lambda: (left.data_ptr(), right.data_ptr(), out.data_ptr()),
                "cuCtxGetCurrent": lambda: int(current_context()[1]),
                "torch.mm(out=)": lambda: torch.mm(left, right, out=out),
            }
            found = {name: _idle_microseconds(call) for name, call in costs.items()}
            for name, variant in variants.items():
                context.plans = {by_address: variant}
                found[name] = _idle_microseconds(lambda: product(left, right, out=out))
        context.close()
    how = f"{direct.plan.kernel}, guard {guard_name(check)}, by {'address' if by_address else 'size'}"
    return f"{how}: " + ", ".join(f"{name} {cost:.2f} us" for name, cost in found.items())


def _yes(*_: object) -> bool:
    return True


def _nothing(*_: object) -> int:
    return 0


def _idle_microseconds(call: Callable[[], object]) -> float:
    """Return the host time of one call; fewer are under way than the driver takes before it makes the host wait."""
    import torch

    torch.cuda.synchronize()
    return microseconds(call, 150)


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
