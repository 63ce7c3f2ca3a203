"""Winners that were never really compared: found by their explanations, told by `show` and `doctor`, measured anew."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.comparison import undecided
from tensorplay.cli.main import main
from tensorplay.cli.this_build import this_build
from tensorplay.database.csv_text import format_results
from tensorplay.database.explanation import explanation_of
from tensorplay.database.explanations import ExplanationLog, explanations_name
from tensorplay.database.record import Entry
from tensorplay.database.validators import digest
from tensorplay.gemm import Signature
from tensorplay.measure.report import CandidateReport, SelectionReport, Verdict

OP = "GemmTunableOp_Float32"
RESULTS = "tunableop_resultscpu.csv"
NEVER = {Verdict.INSUFFICIENT_BUDGET, Verdict.UNSTABLE, Verdict.NOT_MEASURED}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FILENAME", "CANDIDATES", "FAMILIES", "ENABLED", "MAX_TUNING_DURATION_MS"):
        monkeypatch.delenv(f"TP_TUNABLEOP_{name}", raising=False)
    monkeypatch.setenv("TP_TUNABLEOP_MAX_TUNING_SAMPLES", "9")


def entry(m: int, kernel: str = "host_numpy", time_ms: float = 52.0) -> Entry:
    return Entry(OP, f"taN_m{m}_n24_k16_bias0_devcpu", kernel, time_ms)


def explain(winner: Entry, verdict: Verdict, build: str = "") -> None:
    time_ms = winner.time_ms or None
    own = CandidateReport("host_numpy", 3, time_ms, time_ms, time_ms, time_ms, None)
    report = SelectionReport(verdict, winner.kernel, time_ms, time_ms, (own,))
    build = build or digest(this_build().validators)
    log = ExplanationLog(explanations_name(RESULTS))
    log.record(explanation_of(winner.signature, build, report.to_dict()))


def record(verdicts: Mapping[Entry, Verdict]) -> None:
    Path(RESULTS).write_text(format_results(this_build().validators, list(verdicts)), encoding="utf-8")
    for winner, verdict in verdicts.items():
        explain(winner, verdict)


def found(*winners: Entry) -> dict[Signature, str]:
    return undecided(RESULTS, winners, this_build().validators)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@given(verdict=st.sampled_from(Verdict), by_hand=st.booleans(), elsewhere=st.booleans())
def test_a_winner_is_undecided_by_the_verdict_of_its_own_measurement(
    verdict: Verdict, by_hand: bool, elsewhere: bool
) -> None:
    Path(explanations_name(RESULTS)).unlink(missing_ok=True)
    winner = entry(8)
    explain(winner, verdict, "0badc0de" if elsewhere else "")
    recorded = winner._replace(kernel="host_scipy", time_ms=0.0) if by_hand else winner
    is_known = not by_hand and not elsewhere
    assert found(recorded) == ({winner.signature: verdict} if is_known and verdict in NEVER else {})


def test_the_last_measurement_counts_and_nothing_is_found_without_a_readable_file() -> None:
    winner = entry(8)
    assert found(winner) == {}
    explain(winner, Verdict.UNSTABLE)
    explain(winner, Verdict.FIRST_CHOICE)
    assert found(winner) == {}
    explain(winner, Verdict.INSUFFICIENT_BUDGET)
    assert found(winner) == {winner.signature: "insufficient budget"}
    path = Path(explanations_name(RESULTS))
    path.unlink()
    path.mkdir()
    assert found(winner) == {}


def test_show_and_doctor_tell_how_many_and_what_to_do() -> None:
    record({entry(8): Verdict.INSUFFICIENT_BUDGET, entry(9): Verdict.FIRST_CHOICE})
    shown = run("show", RESULTS)
    assert f"{RESULTS}: results, 2 winners, 1 of them never really compared" in shown.stdout
    assert f"tensorplay tune --undecided {RESULTS}" in shown.stdout
    (file,) = json.loads(run("show", RESULTS, "--json").stdout)["files"]
    assert file["undecided"] == [{"op": OP, "params": entry(8).params, "verdict": "insufficient budget"}]
    examined = run("doctor")
    assert examined.exit_code == 0
    assert "2 winners, 1 of them never really compared, writable" in examined.stdout
    assert "note: 1 winner was never really compared" in examined.stdout
    assert json.loads(run("doctor", "--json").stdout)["files"][0]["undecided"] == 1


def test_where_all_were_compared_nothing_is_said() -> None:
    record({entry(8): Verdict.WINNER, entry(9): Verdict.WITHIN_NOISE})
    assert "never really" not in run("show", RESULTS).stdout
    assert "never really" not in run("doctor").stdout
    nothing = run("tune", "--undecided")
    assert nothing.exit_code == 0, nothing.output
    assert nothing.stdout == "nothing to measure: as far as the files say, every winner was really compared\n"
    assert json.loads(run("tune", "--undecided", "--json").stdout) == []


def test_only_those_are_measured_again() -> None:
    record({entry(8): Verdict.INSUFFICIENT_BUDGET, entry(9): Verdict.FIRST_CHOICE})
    result = run("tune", "--undecided", "--json")
    assert result.exit_code == 0, result.output
    (outcome,) = json.loads(result.stdout)
    assert (outcome["signature"], outcome["measured"]) == ([OP, entry(8).params], True)
    assert outcome["time_ms"] < 52.0
    assert "m9_n24_k16_bias0_devcpu,host_numpy,52" in Path(RESULTS).read_text(encoding="utf-8")


def test_without_a_results_file_it_is_a_usage_error() -> None:
    result = run("tune", "--undecided")
    assert result.exit_code == 2
    assert "there is no results file here" in result.output
