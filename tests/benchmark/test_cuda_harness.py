import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.base import Plan
from tensorplay.runtime.counters import Tally
from tensorplay.runtime.plans import TABLE
from tensorplay.runtime.process import use_context
from tensorplay.runtime.resolved import Resolved

ROOT = Path(__file__).resolve().parents[2]
BENCHMARK = ROOT / "benchmark"
sys.path.insert(0, str(BENCHMARK))

cuda_machine = import_module("harness.cuda_machine")
cuda_shapes = import_module("harness.cuda_shapes")
prepared = import_module("harness.prepared")
setting = import_module("cuda_reach.setting")
fresh = import_module("harness.fresh")
result = import_module("harness.result")
spread = import_module("harness.spread")
products = import_module("cuda_reach.products")
bench_tunable = import_module("bench_cuda_tunable")
bench_reach = import_module("bench_cuda_reach")

SCRIPTS = ("bench_cuda_tunable.py", "bench_cuda_reach.py")
NO_DEVICE = pytest.mark.skipif(cuda_machine.reason_for_no_device() is None, reason="there is a device")
QUERIED = "NVIDIA H200, 570.86.15, 1980, 1980, 3201, 41, [N/A], 700.00\n"


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, str(BENCHMARK / script), *arguments), capture_output=True, text=True, check=False
    )


def is_running(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("script", SCRIPTS)
@NO_DEVICE
def test_without_a_device_a_benchmark_says_so_and_claims_nothing(script: str, tmp_path: Path) -> None:
    done = run(script, "--quick", "--results", str(tmp_path))
    assert done.returncode == 77
    assert "nothing was measured: " in done.stderr
    assert not list(tmp_path.iterdir())


def test_wrong_arguments_are_refused_and_parts_are_listed() -> None:
    assert run("bench_cuda_tunable.py", "--repeats", "0").returncode == 2
    assert run("bench_cuda_reach.py", "--part", "nonsense").returncode == 2
    assert run("bench_cuda_reach.py", "--list").stdout.split() == list(bench_reach.PARTS)


@pytest.mark.parametrize("part", bench_reach.PARTS)
def test_every_part_is_there(part: str) -> None:
    assert callable(import_module(f"cuda_reach.{part}").measure)


@NO_DEVICE
def test_the_script_for_the_device_goes_on_after_each_part(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHON": sys.executable, "PARTS": "tunable healing", "QUICK": "1"}
    done = subprocess.run(
        ("/bin/bash", str(ROOT / "scripts" / "gpu_bench"), str(tmp_path)),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in ("tunable", "healing", "merging"):
        assert f"== {name} (exit 77" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"bench.log", "summary.txt"}


def test_a_prepared_process_answers_once_it_is_told_to(tmp_path: Path) -> None:
    with prepared.PreparedProcess(cuda_machine.parse_query, directory=tmp_path) as process:
        process.wait_until_ready()
        assert process.call(text=QUERIED)["driver"] == "570.86.15"


def test_a_prepared_process_that_fails_tells_why(tmp_path: Path) -> None:
    with pytest.raises(fresh.FreshProcessError, match="unexpected keyword argument 'nonsense'"):
        prepared.call_prepared(cuda_machine.parse_query, directory=tmp_path, nonsense=1)
    with (
        prepared.PreparedProcess(cuda_machine.parse_query, directory=tmp_path / "nowhere") as process,
        pytest.raises(fresh.FreshProcessError, match="nowhere"),
    ):
        process.wait_until_ready()


def test_a_prepared_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    # Another process keeps its input open, so that it does not end for want of it.
    code = (
        "import os, signal, subprocess, harness.cuda_machine as m; from harness.prepared import PreparedProcess;"
        f"p = PreparedProcess(m.parse_query, directory={str(tmp_path)!r}); p.wait_until_ready();"
        "kept = subprocess.Popen(('sleep', '60'), pass_fds=[p._process.stdin.fileno()], stdout=subprocess.DEVNULL);"
        "print(p._process.pid, kept.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(BENCHMARK), str(ROOT)))}
    done = subprocess.run((sys.executable, "-c", code), env=environment, stdout=subprocess.PIPE, text=True, check=False)
    child, kept = map(int, done.stdout.split())
    try:
        deadline = time.monotonic() + 30
        while is_running(child):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert is_running(kept)
    finally:
        os.kill(kept, signal.SIGKILL)


@pytest.mark.parametrize(("visible", "name"), [(None, "0"), ("", "0"), ("3,1", "3"), ("GPU-9", "GPU-9")])
def test_clocks_are_those_of_the_device_that_a_process_sees_first(visible: str | None, name: str) -> None:
    assert cuda_machine.system_name({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == name


def test_clocks_are_numbers_where_the_driver_tells_them() -> None:
    found = cuda_machine.parse_query(QUERIED)
    assert (found["name"], found["sm_mhz"], found["power_w"]) == ("NVIDIA H200", 1980.0, "[N/A]")
    assert cuda_machine.parse_query("") == cuda_machine.parse_query("no devices were found\n") == {}


def test_the_shapes_are_of_families_that_are_tuned_by_default() -> None:
    families = import_module("tensorplay.backends.cublaslt.families")
    for shape in (*cuda_shapes.REACH_SHAPES, cuda_shapes.PRIMING):
        assert families.is_tunable_problem(shape.problem, "plan"), shape
    assert len(set(cuda_shapes.REACH_SHAPES)) == len(cuda_shapes.REACH_SHAPES)
    assert cuda_shapes.PRIMING not in cuda_shapes.REACH_SHAPES


@given(st.integers(0, 1000), st.sampled_from([shape.dtype for shape in cuda_shapes.SEED_SHAPES]))
def test_replay_always_follows_tuning(seed: int, dtype: str) -> None:
    runs = bench_tunable.RUNS[dtype]
    order = bench_tunable._order(runs, random.Random(seed))  # noqa: S311 - an order, not a secret
    assert sorted(order) == sorted(runs)
    assert order.index("replay") > order.index("tuning")


def answered(first_ms: dict[str, float], **further: Any) -> dict[str, list[dict[str, Any]]]:
    plain = {"digest": "d", "kernel": "k", "stats": {"measured": 0, "rejected": 0}, "steady_us": 5.0}
    plain |= {"user_ms": 3.0, "system_ms": 1.0, "faults": 400} | further
    return {mode: [{"first_ms": ms} | plain for _ in range(3)] for mode, ms in first_ms.items()}


def summed_up(answers: dict[str, list[dict[str, Any]]]) -> Any:
    return bench_tunable.summed_up(cuda_shapes.SEED_SHAPES[:1], [answers], [], {})


def test_the_goals_of_first_calls_are_judged_by_medians() -> None:
    fast = {"bare": 5.0, "default": 100.0, "tuning": 200.0, "replay": 5.0}
    assert summed_up(answered(fast)).is_reached
    assert not summed_up(answered(fast | {"replay": 5.5})).is_reached
    assert not summed_up(answered(fast | {"default": 45.0})).is_reached
    noisy = answered(fast)
    noisy["replay"][0]["first_ms"] = 50.0
    assert summed_up(noisy).is_reached
    assert "4096x4096x4096 float32" in result.render(summed_up(noisy))
    told = summed_up(noisy).settings["calls: first_ms user_ms system_ms faults"]["4096x4096x4096 float32"]
    assert told["replay"] == ["50 3 1 400", "5 3 1 400", "5 3 1 400"]


def test_each_repeat_of_first_calls_is_written_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = answered({"bare": 5.0, "default": 100.0, "tuning": 200.0, "replay": 5.0})
    repeats = iter([([answers] * 5, ["one process failed"])])
    monkeypatch.setattr(bench_tunable, "one_repeat", lambda *_arguments: next(repeats))
    options = argparse.Namespace(quick=False, repeats=3, seconds=60.0, results=tmp_path)
    # Whoever ends the run, ends it in a repeat.
    with pytest.raises(StopIteration):
        bench_tunable.measure(options)
    written = json.loads((tmp_path / "cuda_tunable.json").read_text())
    assert (written["settings"]["repeats"], written["settings"]["repeats wanted"]) == (1, 3)
    assert len(written["rows"]) == 5


def test_no_repeat_is_begun_that_would_end_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = answered({"bare": 5.0, "default": 100.0, "tuning": 200.0, "replay": 5.0})
    monkeypatch.setattr(bench_tunable, "one_repeat", lambda *_arguments: ([answers] * 5, []))
    found = bench_tunable.measure(argparse.Namespace(quick=False, repeats=3, seconds=0.0, results=tmp_path))
    assert found.settings["repeats"] in {0, 1}


def test_a_replay_that_measures_differs_or_is_missing_misses() -> None:
    times = {"bare": 5.0, "default": 100.0, "tuning": 200.0, "replay": 5.0}
    assert not summed_up(answered(times, stats={"measured": 1})).is_reached
    other = answered(times)
    other["replay"][1]["digest"] = "e"
    assert not summed_up(other).is_reached
    assert not summed_up(answered(times) | {"replay": []}).is_reached


@given(
    st.floats(0, 1e6).map(lambda value: float(f"{value:.5g}")),
    st.one_of(st.none(), st.builds(result.Goal, st.sampled_from([0, 0.1, 1.05, 250, 200.0]), st.booleans())),
    st.sampled_from([None, spread.spread_of([1.0, 2.0, 3.0])]),
)
def test_a_figure_is_read_back_as_it_was_written(measured: float, goal: Any, spread_: Any) -> None:
    figure = result.Figure("what", measured, "us", goal, spread_)
    again = bench_reach.figure_of("part", json.loads(json.dumps(figure.to_dict())))
    assert again.to_dict() == figure.to_dict() | {"name": "part: what"}


def test_a_part_without_a_result_is_missed(tmp_path: Path) -> None:
    for part in bench_reach.PARTS[1:]:
        found = result.Result(f"cuda_reach_{part}", "?", [result.Figure("what", 1, goal=result.Goal(1))])
        result.write(found, tmp_path, {})
    merged = bench_reach.merged(bench_reach.documents_in(tmp_path))
    assert not merged.is_reached
    assert merged.settings["missing"] == [bench_reach.PARTS[0]]
    found = result.Result(f"cuda_reach_{bench_reach.PARTS[0]}", "?", [])
    result.write(found, tmp_path, {})
    whole = bench_reach.merged(bench_reach.documents_in(tmp_path))
    assert whole.is_reached
    assert json.loads(result.write(whole, tmp_path, {}).read_text())["settings"]["parts"].keys() == set(
        bench_reach.PARTS
    )


def test_what_ran_is_told_beside_a_table_of_hits_in_c(tmp_path: Path) -> None:
    shape, other = cuda_shapes.CudaShape("float32", 8, 4, 2), cuda_shapes.CudaShape("float32", 8, 4, 3)
    context = setting.context_of(tmp_path, enabled=False)
    assert setting.kernel_run(context, shape) == ""
    for key, posed, kernel in (("one", shape, "Default"), ("two", shape, "cublas"), ("three", other, "skinny")):
        plan = Plan(posed.problem, kernel, lambda *_: None)
        context.plans[key] = Resolved(plan.run, Tally(), plan=plan)
    plans: dict[Any, Any] = context.plans
    plans |= {TABLE: object(), "no plan": Resolved(lambda *_: None, Tally())}
    assert setting.kernel_run(context, other) == "skinny"
    with use_context(context):
        assert bench_tunable._what_ran(shape)["kernel"] == "Default cublas"


@given(st.integers(0, 10_000), st.sampled_from(products.OPERATIONS))
def test_random_products_are_ones_that_the_library_has(seed: int, operation: str) -> None:
    case = products.random_case(random.Random(seed), operation)  # noqa: S311 - shapes, no secret
    assert case.operation == operation
    if operation in {"linear", "bias"}:
        assert case.dtype in products._REAL
    if case.dtype == "float8_e4m3fn":
        assert operation == "mm"
        assert case.transposes == (False, True)
        assert {case.m % 16, case.n % 16, case.k % 16, *case.paddings} == {0}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_the_bound_lets_roundings_pass_and_no_missing_product(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, size) for size in ((40, 300), (300, 50)))
    case = products.Case(operation="mm", dtype=dtype, m=40, n=50, k=300, transposes=(False, False), paddings=(0, 0, 0))
    posed = products.Posed(lambda: None, None, None, a @ b, np.abs(a) @ np.abs(b), np.zeros(1))
    rounded = (a.astype(dtype) @ b.astype(dtype)).astype(np.complex128 if case.dtype == "complex64" else np.float64)
    # Operands are exact on a device; here converting them is one more error, which float64 has not.
    assert case.share_of_bound(posed, rounded) < (1.0 if dtype == "float64" else 40.0)
    assert case.share_of_bound(posed, a @ b) == 0.0
    assert case.share_of_bound(posed, a[:, :-1] @ b[:-1]) > 40.0
    assert case.share_of_bound(posed, np.full((40, 50), np.nan)) == np.inf
