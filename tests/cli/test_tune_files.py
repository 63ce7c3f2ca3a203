"""`tensorplay tune` writes back to the results files that it is given, and says where the winners are."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.main import main
from tensorplay.cli.this_build import this_build
from tensorplay.database.csv_text import format_results, parse_results
from tensorplay.database.explanation import explanation_of
from tensorplay.database.explanations import ExplanationLog, explanations_name
from tensorplay.database.filename import sibling_name
from tensorplay.database.killers import Death, Killer, KillerLog, killers_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.validators import digest
from tensorplay.gemm import Signature

OP = "GemmTunableOp_Float32"
SMALL = Entry(OP, "taN_m24_n40_k16_bias0_devcpu", "host_numpy", 52.0)
OTHER = SMALL._replace(params="taN_m9_n24_k16_bias0_devcpu")
EVERYWHERE = "tunableop_resultscpu.csv"
UNDECIDED = {"insufficient budget", "unstable", "not measured"}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("FILENAME", "CANDIDATES", "FAMILIES"):
        monkeypatch.delenv(f"TP_TUNABLEOP_{name}", raising=False)
    monkeypatch.setenv("TP_TUNABLEOP_MAX_TUNING_SAMPLES", "9")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["tune", *arguments])


def write(path: str, *winners: Entry, validators: tuple[Validator, ...] = ()) -> None:
    text = format_results(validators or this_build().validators, winners)
    Path(path).write_text(text, encoding="utf-8")


def explain(path: str, winner: Entry, verdict: str) -> None:
    report = {"verdict": verdict, "winner": winner.kernel, "winner_ms": winner.time_ms, "candidates": []}
    build = digest(this_build().validators)
    ExplanationLog(explanations_name(path)).record(explanation_of(winner.signature, build, report))


def times(path: str) -> dict[Signature, float]:
    return {entry.signature: entry.time_ms for entry in parse_results(Path(path).read_bytes()).entries}


def is_recorded(outcome: dict[str, Any], path: str) -> bool:
    """Return whether the file has what an outcome says, which is new unless a busy machine decided nothing."""
    time_ms = times(path)[Signature(*outcome["signature"])]
    is_new = (time_ms < 52.0) is (outcome["kept"] is None)
    return outcome["measured"] and is_new and time_ms == pytest.approx(outcome["time_ms"], rel=1e-5)


def winners_line(path: str) -> str:
    return f"winners: {Path(path).absolute()}"


@pytest.mark.parametrize("name", ["sharedcpu.csv", "../shared.csv", "gpu0.csv"])
def test_what_was_never_compared_is_measured_into_its_own_file_whatever_that_is_called(name: str) -> None:
    write(name, SMALL, OTHER)
    explain(name, SMALL, "insufficient budget")
    explain(name, OTHER, "first choice")
    result = run("--undecided", name, "--json")
    assert result.exit_code == 0, result.output
    (outcome,) = json.loads(result.stdout)
    assert outcome["signature"] == list(SMALL.signature)
    assert outcome["results"] == str(Path(name).absolute())
    assert is_recorded(outcome, name)
    assert times(name)[OTHER.signature] == 52.0
    assert not Path(EVERYWHERE).exists()
    (shown,) = json.loads(CliRunner().invoke(main, ["show", name, "--json"]).stdout)["files"]
    assert not shown["undecided"] or outcome["kept"] or outcome["verdict"] in UNDECIDED


def test_again_writes_back_and_leaves_out_what_kills_by_the_file_beside_it() -> None:
    write("../mine.csv", SMALL)
    KillerLog(killers_name("../mine.csv")).record(Killer(*SMALL.signature, "host_numpy_dot1", Death.DIED))
    (outcome,) = json.loads(run("--again", "../mine.csv", "--json").stdout)
    assert is_recorded(outcome, "../mine.csv")
    assert outcome["kernel"] != "host_numpy_dot1"
    assert outcome["results"] == str(Path("../mine.csv").absolute())
    assert list(Path().iterdir()) == []


def test_two_files_get_their_own_winners() -> None:
    write("a.csv", SMALL)
    write("b.csv", SMALL, OTHER)
    result = run("--again", "a.csv", "b.csv")
    assert result.exit_code == 0, result.output
    assert "3 of 3 signatures measured" in result.stdout
    assert result.stdout.splitlines()[-2:] == [winners_line("a.csv"), winners_line("b.csv")]
    assert set(times("a.csv")) == {SMALL.signature}
    outcomes = json.loads(run("--again", "a.csv", "b.csv", "--json").stdout)
    assert [Path(each["results"]).name for each in outcomes] == ["a.csv", "b.csv", "b.csv"]


def test_winners_of_an_untuned_file_go_where_they_always_did_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("untuned.csv").write_text(",".join(SMALL.signature) + "\n", encoding="utf-8")
    assert run("untuned.csv").stdout.splitlines()[-1] == winners_line(EVERYWHERE)
    monkeypatch.setenv("TP_TUNABLEOP_FILENAME", "../all.csv")
    assert run("untuned.csv").stdout.splitlines()[-1] == winners_line("../allcpu.csv")


def test_a_results_file_that_is_there_is_meant_by_its_own_name() -> None:
    Path("untuned.csv").write_text(",".join(SMALL.signature) + "\n", encoding="utf-8")
    write("sharedcpu.csv", OTHER)
    assert run("untuned.csv", "--results", "sharedcpu.csv").stdout.splitlines()[-1] == winners_line("sharedcpu.csv")
    assert set(times("sharedcpu.csv")) == {SMALL.signature, OTHER.signature}
    assert not Path("sharedcpucpu.csv").exists()
    assert run("untuned.csv", "--results", "newcpu.csv").stdout.splitlines()[-1] == winners_line("newcpucpu.csv")


def test_another_builds_file_stays_and_the_sibling_is_named() -> None:
    write("theirs.csv", SMALL, validators=(Validator("HOST_CPU", "another"),))
    before = Path("theirs.csv").read_bytes()
    result = run("theirs.csv")
    sibling = sibling_name("theirs.csv", digest(this_build().validators))
    assert result.stdout.splitlines()[-1] == winners_line(sibling)
    assert Path("theirs.csv").read_bytes() == before
    # The sibling itself is written back to, and has no sibling of its own.
    again = run("--again", sibling)
    assert again.stdout.splitlines()[-1] == winners_line(sibling)
    assert sorted(path.name for path in Path().glob("*.csv")) == sorted(["theirs.csv", sibling])


def test_each_file_that_holds_a_winner_is_named() -> None:
    sibling = sibling_name("minecpu.csv", digest(this_build().validators))
    write("minecpu.csv", SMALL)
    # As a process leaves it that could not write to the file itself.
    write(sibling, OTHER)
    Path("untuned.csv").write_text(
        "".join(f"{op},{params}\n" for op, params in (SMALL.signature, OTHER.signature)), encoding="utf-8"
    )
    result = run("untuned.csv", "--results", "mine.csv")
    assert "0 of 2 signatures measured" in result.stdout
    assert result.stdout.splitlines()[-2:] == [winners_line("minecpu.csv"), winners_line(sibling)]


def test_what_cannot_be_meant_is_a_usage_error() -> None:
    write("a.csv", SMALL)
    Path("untuned.csv").write_text(",".join(SMALL.signature) + "\n", encoding="utf-8")
    Path("ten.py").write_text("print(10)\n", encoding="utf-8")
    for arguments, said in (
        (("--again", "--undecided", "a.csv"), "give one of the two"),
        (("nothere.csv",), "nothere.csv cannot be read: No such file or directory"),
        (("--undecided", "untuned.csv"), "untuned.csv is no results file"),
        (("--undecided", "ten.py"), "ten.py is no results file"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert said in result.stderr
    assert times("a.csv") == {SMALL.signature: 52.0}


def test_killers_beside_the_results_of_the_folder_are_no_results_file() -> None:
    write(EVERYWHERE, SMALL)
    explain(EVERYWHERE, SMALL, "first choice")
    KillerLog(killers_name(EVERYWHERE)).record(Killer(*SMALL.signature, "host_numpy_dot1", Death.DIED))
    assert run("--undecided").stdout.startswith("nothing to measure: as far as the files say")


def test_winners_that_nothing_explains_are_told_of() -> None:
    write("m2.csv", SMALL, OTHER)
    told = "m2.csv: nothing explains 2 winners of 2, so that nobody can say whether they were compared"
    result = run("--undecided", "m2.csv")
    assert result.exit_code == 0
    assert told in result.stdout
    assert "tensorplay tune --again m2.csv" in result.stdout
    assert "as far as the files say" not in result.stdout
    as_json = run("--undecided", "m2.csv", "--json")
    assert json.loads(as_json.stdout) == []
    assert told in as_json.stderr
    explain("m2.csv", SMALL, "first choice")
    assert "nothing explains 1 winner of 2" in run("--undecided", "m2.csv").stdout
