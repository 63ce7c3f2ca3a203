"""How each winner was chosen is on disk, and every process can tell."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.explanations import ExplanationLog
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.device_explanations import DeviceExplanations
from tensorplay.runtime.listeners import Listeners
from tensorplay.testing import ManualClock, ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
FOUND = (
    "verdict", "winner", "winner_ms", "first_choice_ms", "candidates", "confirmation", "search", "histogram",
    "numerical_check",
)  # fmt: skip

Explain = Callable[[TuningContext], dict[str, object]]


class ClockedBackend(ScriptedBackend):
    """A scripted device whose clocks can be read."""

    def clocks(self, device: str) -> dict[str, int] | None:
        return {"sm": 1980, "memory": 3201}


@pytest.fixture
def explain(problem: GemmProblem) -> Explain:
    return lambda context: context.explain(*signature_of(problem))


def file_of(folder: Path, name: str = "tunableop_results0.explain.jsonl") -> Path:
    return folder / name


def test_a_winner_is_explained_on_disk_by_one_line(
    context: TuningContext, call: Any, tmp_path: Path, problem: GemmProblem
) -> None:
    call(context)
    (line,) = file_of(tmp_path).read_text().splitlines()
    told = json.loads(line)
    assert (told["op"], told["params"]) == signature_of(problem)
    assert (told["verdict"], told["winner"]) == ("winner", FAST)
    assert {each["kernel"]: each["dropped"] is None for each in told["candidates"]} == {
        FIRST: False,
        FAST: True,
        SLOW: False,
    }
    assert all({"median_ms", "quartile_low_ms", "quartile_high_ms"} <= set(each) for each in told["candidates"])
    assert {"first_choice_ms", "winner_ms", "gain", "margin", "pairs"} <= set(told["confirmation"])


def test_another_process_answers_as_the_one_that_measured(make_context: Any, call: Any, explain: Explain) -> None:
    first, second, third = make_context(), make_context(), make_context()
    call(first)
    here = explain(first)
    call(second)
    there = explain(second)
    assert list(here) == list(there)
    assert {name: there[name] for name in FOUND} == {name: here[name] for name in FOUND}
    assert (here["origin"], there["origin"]) == ("measured here", "file")
    # One that has not read the results yet knows of no winner, but what the file of explanations says.
    unread = explain(third)
    assert unread["kernel"] is None
    assert {name: unread[name] for name in FOUND} == {name: here[name] for name in FOUND}
    assert third.get_results() == []
    assert third.get_filename() == ""


def test_clocks_are_kept_where_they_can_be_read(make_context: Any, call: Any, explain: Explain) -> None:
    device = ClockedBackend({FIRST: 1.0, FAST: 0.5})
    context = make_context(on=device)
    call(context, on=device)
    assert explain(context)["clocks"] == {"sm": 1980, "memory": 3201}
    assert explain(make_context(on=device))["clocks"] == {"sm": 1980, "memory": 3201}


def test_without_them_they_are_none(context: TuningContext, call: Any, explain: Explain) -> None:
    call(context)
    assert explain(context)["clocks"] is None


def test_of_hundreds_of_candidates_memory_has_all_and_the_file_the_fastest(
    make_context: Any, call: Any, explain: Explain
) -> None:
    device = ScriptedBackend({scripted_kernel(number): 1.0 + (number * 37 % 200) / 100 for number in range(200)})
    context = make_context(on=device)
    call(context, on=device)
    here, there = explain(context), explain(make_context(on=device))
    assert isinstance(here["candidates"], list)
    assert isinstance(there["candidates"], list)
    assert (len(here["candidates"]), here["left_out"]) == (200, 0)
    assert isinstance(there["left_out"], int)
    assert there["left_out"] > 100
    assert len(there["candidates"]) + there["left_out"] == 200
    assert there["candidates"][0] == here["candidates"][0]


def test_what_is_measured_again_is_explained_by_its_last_line(
    make_context: Any, call: Any, explain: Explain, backend: ScriptedBackend
) -> None:
    call(make_context())
    backend.unavailable[FAST] = "not in this library"
    healing = make_context()
    call(healing)
    assert explain(make_context())["winner"] == FIRST
    third = make_context()
    call(third)
    assert explain(third)["winner"] == FIRST


def test_a_kernel_set_by_hand_is_not_explained_by_the_measurement_before(
    make_context: Any, call: Any, explain: Explain, problem: GemmProblem
) -> None:
    first = make_context()
    call(first)
    first.override(*signature_of(problem), SLOW)
    assert explain(first)["verdict"] is None
    second = make_context()
    call(second)
    assert (explain(second)["kernel"], explain(second)["verdict"]) == (SLOW, None)
    # The same kernel by hand was not measured either: its time says so.
    first.override(*signature_of(problem), FAST)
    third = make_context()
    call(third)
    assert (explain(third)["kernel"], explain(third)["verdict"]) == (FAST, None)


def test_forgetting_a_winner_forgets_why(
    make_context: Any, call: Any, explain: Explain, problem: GemmProblem, tmp_path: Path
) -> None:
    context = make_context()
    call(context)
    context.forget(*signature_of(problem))
    assert explain(context)["verdict"] is None
    assert explain(make_context())["verdict"] is None
    assert file_of(tmp_path).read_text() == ""


def test_what_could_not_be_timed_is_explained_too(make_context: Any, call: Any, explain: Explain) -> None:
    device = ScriptedBackend({FIRST: 1.0, FAST: 0.5})
    device.wrong.add(FAST)
    call(make_context(on=device), on=device)
    second = make_context(on=device)
    call(second, on=device)
    told = explain(second)["candidates"]
    assert isinstance(told, list)
    assert "wrong result" in {each["kernel"]: each["dropped"] for each in told}[FAST]


class TestAnotherBuild:
    @pytest.mark.filterwarnings("ignore::tensorplay.errors.ResultsFileWarning")
    def test_s_file_stays_as_it_is_and_ours_lies_beside_the_sibling(
        self, make_context: Any, call: Any, explain: Explain, tmp_path: Path
    ) -> None:
        call(make_context())
        before = file_of(tmp_path).read_bytes()
        newer = ScriptedBackend({FIRST: 1.0, FAST: 0.5, SLOW: 0.25}, version="2")
        context = make_context(on=newer)
        call(context, on=newer)
        assert file_of(tmp_path).read_bytes() == before
        (results,) = [path for path in tmp_path.glob("*.csv") if path.name.count(".") == 2]
        assert file_of(tmp_path, f"{results.stem}.explain.jsonl").exists()
        again = make_context(on=newer)
        call(again, on=newer)
        assert explain(again)["winner"] == SLOW

    def test_s_explanations_are_not_taken_for_ours(
        self, make_context: Any, call: Any, explain: Explain, tmp_path: Path
    ) -> None:
        call(make_context())
        (tmp_path / "tunableop_results0.csv").unlink()
        newer = ScriptedBackend({FIRST: 1.0, FAST: 0.5}, version="2")
        context = make_context(on=newer)
        assert explain(context)["verdict"] is None
        call(context, on=newer)
        assert explain(make_context(on=newer))["winner"] == FAST


class TestADiskThatCannotBeWritten:
    @pytest.fixture(autouse=True)
    def a_folder_in_its_place(self, tmp_path: Path) -> None:
        file_of(tmp_path).mkdir()

    def test_costs_no_product_and_is_counted_each_time_and_logged_once(
        self,
        context: TuningContext,
        backend: ScriptedBackend,
        problem: GemmProblem,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        told: list[object] = []
        context.listeners.add(lambda event, detail: told.append(detail["action"]) if event == "file" else None)
        for m in (4, 5, 6):
            context.resolve(GemmProblem(dtype=problem.dtype, m=m, n=3, k=5, device="0"), backend)
        assert (context.stats()["measured"], context.stats()["unexplained"]) == (3, 3)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "tunableop_results0.explain.jsonl" in caplog.text
        assert told.count("explanation failed") == 3

    def test_leaves_the_answer_in_memory_and_none_for_others(
        self, make_context: Any, call: Any, explain: Explain
    ) -> None:
        context = make_context()
        call(context)
        assert explain(context)["verdict"] == "winner"
        other = make_context()
        call(other)
        assert (explain(other)["kernel"], explain(other)["verdict"]) == (FAST, None)

    def test_makes_forgetting_no_error(self, context: TuningContext, call: Any, problem: GemmProblem) -> None:
        call(context)
        assert context.forget(*signature_of(problem))


def test_after_a_wait_in_vain_for_the_lock_nobody_waits_again_so_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: GemmProblem
) -> None:
    attempts: list[int] = []

    def wait_in_vain(*_: object) -> None:
        attempts.append(1)
        raise TimeoutError("held")

    clock = ManualClock()
    results = str(tmp_path / "a.csv")
    explanations = DeviceExplanations("0" * 8, lambda: [results], Listeners(), clock)
    monkeypatch.setattr(ExplanationLog, "record", wait_in_vain)
    report: dict[str, object] = {"verdict": "alone", "winner": FIRST, "candidates": []}
    for seconds in (0, 10, 10):
        clock.advance(seconds)
        assert not explanations.record(signature_of(problem), report, None)
    assert len(attempts) == 1
    clock.advance(11)
    assert not explanations.record(signature_of(problem), report, None)
    assert len(attempts) == 2


def test_a_results_file_read_by_name_brings_its_explanations(
    make_context: Any, call: Any, explain: Explain, tmp_path: Path
) -> None:
    call(make_context({"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": "other.csv"}))
    context = make_context()
    assert context.read_file("other0.csv")
    assert explain(context)["verdict"] == "winner"


def test_a_signature_of_a_device_that_is_not_here_has_no_answer(context: TuningContext) -> None:
    told = context.explain("GemmTunableOp_Float32", "taN_m1_n1_k1_bias0_dev977")
    assert told["verdict"] is None


@pytest.mark.parametrize("text", [b"\xff\x00\n" * 100, b"{" * 5000 + b"\n", b'{"op": NaN}\n'])
def test_a_file_of_nonsense_hides_nothing_and_breaks_nothing(
    make_context: Any, call: Any, explain: Explain, tmp_path: Path, text: bytes
) -> None:
    file_of(tmp_path).write_bytes(text)
    call(make_context())
    assert explain(make_context())["winner"] == FAST
