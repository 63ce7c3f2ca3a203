import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorplay.cli.main import main
from tensorplay.cli.this_build import this_build
from tensorplay.database.csv_text import format_results
from tensorplay.database.explanation import explanation_of, format_explanation
from tensorplay.database.record import Entry
from tensorplay.gemm import Signature

OP = "GemmTunableOp_Float32"
SMALL, LARGE = Signature(OP, "taN_m16_n64_k16_bias0_devcpu"), Signature(OP, "taT_m512_n64_k16_bias1_devcpu")
CONFIRMATION = {
    "pairs": 27,
    "first_choice_ms": 0.0025,
    "winner_ms": 0.002,
    "gain": 0.25,
    "gain_low": 0.2,
    "gain_high": -0.01,
    "margin": 0.01,
}


def timed(kernel: str, median_ms: float, dropped: str | None) -> dict[str, object]:
    return {
        "kernel": kernel,
        "samples": 30,
        "median_ms": median_ms,
        "quartile_low_ms": median_ms * 0.9,
        "quartile_high_ms": median_ms * 1.1,
        "screened_ms": median_ms * 2,
        "dropped": dropped,
    }


def untimed(kernel: str, dropped: str, screened_ms: float | None = None) -> dict[str, object]:
    return {
        "kernel": kernel,
        "samples": 0,
        "median_ms": None,
        "quartile_low_ms": None,
        "quartile_high_ms": None,
        "screened_ms": screened_ms,
        "dropped": dropped,
    }


CANDIDATES = [
    timed("host_numpy", 0.0025, "confirmation: the winner gains +25.0%"),
    untimed("host_scipy", "wrong result: off by 3"),
    untimed("host_mkl_threads2", "screening: took 4 times the fastest", 0.016),
    timed("host_numpy_dot1", 0.002, None),
]


def line(signature: Signature, **changes: object) -> str:
    report: dict[str, object] = {
        "verdict": "winner",
        "winner": "host_numpy_dot1",
        "winner_ms": 0.002,
        "first_choice_ms": 0.0025,
        "candidates": CANDIDATES,
        "confirmation": CONFIRMATION,
        "search": None,
    }
    return format_explanation(explanation_of(signature, "0123abcd", report | changes, {"sm": 1980}))


@pytest.fixture
def results(tmp_path: Path) -> str:
    path = tmp_path / "results.csv"
    winners = [Entry(*SMALL, "host_numpy_dot1", 0.002), Entry(*LARGE, "Default", 0.0)]
    path.write_text(format_results(this_build().validators, winners), encoding="utf-8")
    (tmp_path / "results.explain.jsonl").write_text(line(SMALL) + line(LARGE, confirmation=None))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("--json", *arguments).stdout)
    return found


def test_each_winner_is_a_row_without_a_signature(results: str) -> None:
    shown = run(results)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0] == f"{results.removesuffix('.csv')}.explain.jsonl: 2 explanations"
    row = next(line for line in shown.stdout.splitlines() if "m16_" in line)
    assert row.split() == [OP, SMALL.params, "winner", "host_numpy_dot1", "2.00", "us", "+25.0%", "27", "4"]
    other = next(line for line in shown.stdout.splitlines() if "m512_" in line)
    assert other.split()[-3:] == ["-", "-", "4"]


@pytest.mark.parametrize("pattern", [SMALL.params, f"{OP},{SMALL.params}", "*m16_*", "GemmTunableOp_*,taN*"])
def test_a_signature_is_shown_with_its_candidates(results: str, pattern: str) -> None:
    shown = run(results, pattern)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].endswith(": 2 explanations, 1 of them fit")
    assert f"{OP} {SMALL.params}" in lines
    assert "  selected: host_numpy_dot1, 2.00 us, the first choice 2.50 us" in lines
    assert (
        "  confirmation: 27 pairs, gain +25.0% (+20.0% to -1.0%), needed +1.0%, first choice 2.50 us against 2.00 us"
        in lines
    )
    assert "  clocks: sm 1980 MHz" in lines
    assert not any("recorded" in line for line in lines)
    rows = lines[next(place for place, line in enumerate(lines) if line.startswith("kernel ")) + 1 :]
    assert [row.split()[0] for row in rows] == ["host_numpy_dot1", "host_numpy", "host_mkl_threads2", "host_scipy"]
    assert rows[0].split()[1:] == [
        "2.00",
        "us",
        "1.80",
        "us",
        "to",
        "2.20",
        "us",
        "30",
        "4.00",
        "us",
        "#" * 16,
        "selected",
    ]
    assert "#" * 13 + "     first choice: confirmation: the winner" in rows[1]
    assert rows[2].split()[:5] == ["host_mkl_threads2", "-", "-", "0", "16.0"]
    assert "####  " in rows[2]
    assert rows[3].endswith("wrong result: off by 3")


def test_a_winner_that_is_another_now_is_told(results: str) -> None:
    assert "recorded: Default" in run(results, "*m512*").stdout


def test_a_file_of_explanations_can_be_named_itself(results: str) -> None:
    path = results.replace(".csv", ".explain.jsonl")
    assert run(path).stdout == run(results).stdout
    assert document(path)["explanations"][0]["recorded"] is None


def test_json_has_every_fact(results: str) -> None:
    found = document(results, "*m16*")
    assert (found["kept"], found["bad_lines"]) == (2, 0)
    (told,) = found["explanations"]
    assert (told["op"], told["params"], told["recorded"]) == (*SMALL, "host_numpy_dot1")
    assert told["candidates"] == CANDIDATES
    assert told["confirmation"] == CONFIRMATION
    assert told["clocks"] == {"sm": 1980}


def test_rows_can_be_limited(results: str) -> None:
    shown = run(results, "--limit", "1", "*m16*").stdout
    assert "3 more rows left out; --limit 0 shows all" in shown
    assert "host_scipy" not in shown
    assert "host_scipy" in run(results, "--limit", "0", "*m16*").stdout


def test_what_matches_nothing_is_told_and_is_exit_1(results: str) -> None:
    shown = run(results, "*m17*")
    assert shown.exit_code == 1
    assert "0 of them fit" in shown.stdout
    assert document(results, "*m17*")["explanations"] == []


def test_candidates_that_were_not_kept_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.explain.jsonl"
    many = [timed(f"host_{'a' * (1 + place)}", 1.0 + place, "race: slower") for place in range(100)]
    path.write_text(line(SMALL, candidates=many))
    assert "slower candidates not kept in the file" in run(str(path), "*").stdout


def test_lines_that_cannot_be_read_are_counted(results: str) -> None:
    path = Path(results.replace(".csv", ".explain.jsonl"))
    path.write_text("nonsense\n" + path.read_text() + '{"a": NaN}\n')
    assert ": 2 explanations, 2 lines could not be read" in run(results).stdout
    assert document(results)["bad_lines"] == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nothing.csv"], "nothing.csv cannot be read: No such file or directory"),
        (["lonely.csv"], "there is no lonely.explain.jsonl"),
        (["."], "cannot be read"),
        (["a\0b.csv"], "not a file name"),
    ],
)
def test_a_file_that_is_not_there_is_one_line_and_exit_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lonely.csv").write_text("")
    shown = run(*arguments)
    assert shown.exit_code == 1
    assert shown.stdout == ""
    assert shown.stderr.count("\n") == 1
    assert complaint in shown.stderr


def test_hostile_text_is_shown_on_one_line_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.explain.jsonl"
    hostile = "\x1b[31m\r\nboo\u202e" + "x" * 500
    candidates = [timed(hostile, 1.0, hostile), untimed("host_numpy", hostile)]
    path.write_text(line(SMALL, verdict=hostile[:50], winner=hostile[:100], candidates=candidates, search={hostile: 1}))
    for arguments in ([str(path)], [str(path), "*"]):
        shown = run(*arguments).stdout
        assert "\x1b" not in shown
        assert "\r" not in shown
        assert "\u202e" not in shown
        assert "\\x1b[31m\\r\\nboo\\u202e" in shown


numbers = st.none() | st.integers() | st.floats()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.dictionaries(st.sampled_from(sorted(CANDIDATES[0].keys() - {"kernel"})), numbers | st.text()), max_size=5
    ),
    st.none() | st.dictionaries(st.sampled_from(sorted(CONFIRMATION)), numbers | st.text()),
)
def test_whatever_the_facts_are_they_are_shown(
    tmp_path: Path, candidates: list[dict[str, object]], confirmation: dict[str, object] | None
) -> None:
    path = tmp_path / "a.explain.jsonl"
    named = [{"kernel": f"host_{'a' * (1 + place)}"} | each for place, each in enumerate(candidates)]
    path.write_text(line(SMALL, candidates=named, confirmation=confirmation))
    for arguments in ([str(path)], [str(path), "*"], [str(path), "--json"]):
        assert run(*arguments).exit_code == 0
