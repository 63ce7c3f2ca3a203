import json
import math
import os
import platform
import random
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tensorplay.database.csv_text import parse_results
from tensorplay.gemm import signature_of
from tensorplay.ops.layout import matrix_problem

ROOT = Path(__file__).resolve().parents[2]
BENCHMARK = ROOT / "benchmark"
# The benchmarks are scripts: their own folder is where they look for what they share.
sys.path.insert(0, str(BENCHMARK))

fresh = import_module("harness.fresh")
host_shapes = import_module("harness.host_shapes")
machine = import_module("harness.machine")
quiet = import_module("harness.quiet")
result = import_module("harness.result")
spread = import_module("harness.spread")
timing = import_module("harness.timing")
winners = import_module("harness.winners")

# Without a device those of a GPU do nothing; that of the service has parts, and a test of its own.
_ELSEWHERE = ("bench_cuda_", "bench_grouped", "bench_selection", "bench_service")
SCRIPTS = sorted(path for path in BENCHMARK.glob("bench_*.py") if not path.stem.startswith(_ELSEWHERE))


def scripted(name: str, log: list[str], seconds: Callable[[], float]) -> object:
    def loop(calls: int) -> float:
        log.append(name)
        return seconds() * calls

    return timing.Contestant(loop)


def interleave(contestants: dict[str, object], **how: float) -> dict[str, list[float]]:
    values: dict[str, list[float]] = timing.interleave(contestants, rng=random.Random(0), **how)  # noqa: S311 - an order, not a secret
    return values


def test_a_round_runs_there_and_back_and_the_next_the_other_way_round() -> None:
    log: list[str] = []
    contestants = {name: scripted(name, log, lambda: 1.0) for name in "abc"}
    interleave(contestants, rounds=40, loops=5)
    ways = ["".join(log[start : start + 3]) for start in range(0, len(log), 3)]
    for there, back, next_there, next_back in zip(ways[::4], ways[1::4], ways[2::4], ways[3::4], strict=True):
        assert (back, next_there, next_back) == (there[::-1], there[::-1], there)
    assert len(set(ways)) == 6


def test_one_interruption_does_not_shorten_the_blocks() -> None:
    seconds = iter([1.0, *[1e-3] * 1000])
    assert timing.loops_to_fill([scripted("a", [], lambda: next(seconds))], 0.01) == 10


def test_a_steady_drift_favours_nobody() -> None:
    log: list[str] = []
    contestants = {name: scripted(name, log, lambda: 1.0 + len(log)) for name in "abc"}
    values = interleave(contestants, rounds=4, loops=1)
    assert values["a"] == values["b"] == values["c"]


def test_a_value_is_seconds_of_one_call() -> None:
    contestants = {"a": scripted("a", [], lambda: 0.25)}
    assert interleave(contestants, rounds=3, loops=8) == {"a": [0.25] * 3}


def test_rounds_end_with_the_time() -> None:
    contestants = {"a": scripted("a", [], lambda: 1.0)}
    assert len(interleave(contestants, rounds=1000, loops=1, seconds=0.0)["a"]) == 1


def test_what_sets_the_stage_runs_before_each_block() -> None:
    log: list[str] = []
    contestant = timing.Contestant(float, lambda: log.append("before"))
    interleave({"a": contestant}, rounds=2, loops=1)
    assert log == ["before"] * 4


@pytest.mark.parametrize(("seconds", "loops"), [(1e-6, 2000), (1e-3, 2), (0.5, 1)])
def test_a_block_is_filled_by_the_fastest(seconds: float, loops: int) -> None:
    contestants = [scripted("fast", [], lambda: seconds), scripted("slow", [], lambda: seconds * 10)]
    assert timing.loops_to_fill(contestants, 2e-3) == loops


def test_a_statement_sees_its_names_and_runs_as_often_as_told() -> None:
    calls: list[int] = []
    timing.statement("calls.append(value)", calls=calls, value=7)(3)
    assert calls == [7, 7, 7]


class Scripted:
    def __init__(self, *shares: float) -> None:
        self._shares = [share for each in shares for share in (0.0, each)]

    def share(self) -> float:
        return self._shares.pop(0)


def test_a_stretch_in_which_others_computed_is_dropped() -> None:
    seconds = iter(map(float, range(1000)))
    contestants = {"a": scripted("a", [], lambda: next(seconds))}
    found = quiet.measure_quietly(contestants, rounds=10, loops=1, seconds=60.0, bystanders=Scripted(0.6, 0.01))
    assert found.values["a"] == [20.5 + 2 * number for number in range(10)]
    assert found.others == pytest.approx(0.01)


def test_when_others_never_stop_every_stretch_counts_and_that_is_told() -> None:
    contestants = {"a": scripted("a", [], lambda: 1.0)}
    found = quiet.measure_quietly(contestants, rounds=10, loops=1, seconds=0.0, bystanders=Scripted(0.6))
    assert found.rounds == 10
    assert found.others == pytest.approx(0.6)


def test_bystanders_took_what_was_neither_idle_nor_ours() -> None:
    texts = iter(
        [
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 0 0 0 0 0\n",
            "cpu0 50 0 10 30 10 0 0 0 50 0\ncpu1 100 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 100 0 0 0 0 0 0\nintr 5\n",
        ]
    )
    own = iter([7.0, 7.0 + 40 / os.sysconf("SC_CLK_TCK")])
    bystanders = quiet.Bystanders({0, 2}, lambda: next(texts), lambda: next(own))
    assert bystanders.share() == pytest.approx(0.1)


def test_a_spread_names_its_middle_its_quartiles_and_an_interval_around_both() -> None:
    found = spread.spread_of([float(value) for value in range(1, 102)])
    assert (found.median, found.lower_quartile, found.upper_quartile, found.repeats) == (51, 26, 76, 101)
    assert found.low < 51 < found.high


def test_too_few_values_have_no_interval() -> None:
    found = spread.spread_of([1.0, 2.0, 3.0])
    assert (found.low, found.high) == (None, None)


def test_a_spread_in_another_unit_keeps_its_count() -> None:
    values = [float(value) for value in range(20)]
    assert spread.spread_of(values).scaled(1000.0) == spread.spread_of([1000.0 * value for value in values])


def test_a_ratio_of_medians_lies_in_its_interval() -> None:
    rng = np.random.default_rng(0)
    below = rng.lognormal(0.0, 0.3, 101)
    found = spread.ratio_of_medians(list(2.0 * below * rng.lognormal(0.0, 0.01, 101)), list(below))
    assert found.low < found.median < found.high
    assert found.median == pytest.approx(2.0, rel=0.05)


def test_a_geometric_mean_lies_in_its_interval_and_a_gain_undoes_its_loss() -> None:
    rng = np.random.default_rng(0)
    groups = {name: list(gain * rng.lognormal(0.0, 0.05, 40)) for name, gain in {"a": 2.0, "b": 0.5}.items()}
    found = spread.geometric_mean_spread(groups)
    assert found.low < found.median < found.high
    assert found.low < 1.0 < found.high
    assert math.isclose(spread.geometric_mean([4.0, 0.25]), 1.0)


def test_a_figure_on_its_limit_has_reached_it() -> None:
    below, above = result.Goal(2.0), result.Goal(2.0, at_least=True)
    assert result.Figure("f", 2.0, goal=below).is_reached
    assert result.Figure("f", 2.0, goal=above).is_reached
    assert not result.Figure("f", 2.1, goal=below).is_reached
    assert not result.Figure("f", 1.9, goal=above).is_reached
    assert not result.Figure("f", math.nan, goal=above).is_reached
    assert result.Figure("f", 2.1).is_reached is None


def test_a_result_with_one_missed_goal_is_not_reached_and_says_which(tmp_path: Path) -> None:
    figures = [
        result.Figure("fast enough", 1.0, "us", result.Goal(2.0), spread.spread_of([1.0] * 9)),
        result.Figure("too slow", 3.0, "us", result.Goal(2.0)),
        result.Figure("beside", 9.0),
    ]
    found = result.Result("name", "Is it fast?", figures, {"rounds": 9}, [{"shape": "2x2", "us": 1 / 3}])
    written = json.loads(result.write(found, tmp_path / "new", {"date": "today"}).read_text())
    assert written["reached"] is False
    assert [figure["reached"] for figure in written["figures"]] == [True, False, None]
    assert written["figures"][0]["spread"]["repeats"] == 9
    assert written["rows"] == [{"shape": "2x2", "us": 0.33333}]
    assert written["metadata"] == {"date": "today"}
    last = result.render(found).splitlines()[-3:]
    assert [line.split()[-1] for line in last] == ["yes", "NO", "-"]


def test_metadata_says_what_was_measured_on_but_not_whose_machine_it_was() -> None:
    found = machine.metadata()
    assert {"date", "machine", "versions", "commit", "load_average"} <= set(found)
    assert {"python", "numpy", "blas", "tensorplay"} <= set(found["versions"])
    text = json.dumps(found)
    assert str(ROOT) not in text
    assert str(Path.home()) not in text
    assert platform.node() not in text


def test_a_fresh_process_gets_the_settings_named_and_none_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "asked.py"
    module.write_text(
        "import os\n"
        "def answer(number):\n"
        "    print('noise')\n"
        "    settings = {name: value for name, value in os.environ.items() if name.startswith('TP_')}\n"
        "    return [number + 1, os.getpid(), os.getcwd(), settings]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TP_TUNABLEOP_ENABLED", "1")
    asked = import_module("asked")
    number, process, folder, settings = fresh.call_in_fresh_process(
        asked.answer, directory=tmp_path, settings={"TUNING": "0"}, number=1
    )
    assert (number, folder, settings) == (2, str(tmp_path), {"TP_TUNABLEOP_TUNING": "0"})
    assert process != asked.answer(0)[1]


def test_what_a_fresh_process_raises_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raising.py").write_text("def answer():\n    raise RuntimeError('no such luck')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(fresh.FreshProcessError, match="no such luck"):
        fresh.call_in_fresh_process(import_module("raising").answer, directory=tmp_path)


def test_many_winners_are_that_many_and_a_file_of_them_has_no_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    winners.write_winners(path, [("Device", "cpu")], 2000)
    parsed = parse_results(path.read_bytes())
    assert parsed.bad_lines == ()
    assert len({entry.signature for entry in parsed.entries}) == 2000


def test_the_host_shapes_are_24_different_signatures_laid_out_as_they_say() -> None:
    rng = np.random.default_rng(0)
    signatures = set()
    for shape in host_shapes.HOST_SHAPES:
        operands = shape.operands(rng)
        problem = matrix_problem(*operands)
        assert problem is not None
        assert (problem.m, problem.n, problem.k) == (shape.m, shape.n, shape.k)
        assert (problem.transpose_left, problem.transpose_right) == (shape.left_transposed, shape.right_transposed)
        assert (problem.ld_out is not None) == bool(shape.padding)
        signatures.add(signature_of(problem))
    assert len(signatures) == 24


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_benchmark_runs_and_writes_what_it_found(script: Path, tmp_path: Path) -> None:
    command = (sys.executable, str(script), "--quick", "--results", str(tmp_path))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.json")
    written = json.loads(path.read_text())
    assert path.stem == written["benchmark"] == script.stem.removeprefix("bench_")
    assert written["metadata"]["quick"] is True
    assert any(figure["goal"] for figure in written["figures"])
    for figure in written["figures"]:
        assert figure["name"] in done.stdout
    assert str(tmp_path) not in path.read_text()
