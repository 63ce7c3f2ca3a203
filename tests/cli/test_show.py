import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.main import main
from tensorplay.cli.this_build import this_build
from tensorplay.database.csv_text import format_results
from tensorplay.database.record import Entry, Validator

SMALL = Entry("GemmTunableOp_Float32", "taN_m16_n64_k16_bias0_devcpu", "host_numpy_threads1", 0.002)
LARGE = Entry("GemmTunableOp_Float32", "taT_m512_n64_k16_bias1_devcpu_tbT", "Default", 0.5)
DOUBLE = Entry("GemmTunableOp_Float64", "taN_m32_n64_k16_bias0_devcpu", "host_scipy", 0.0)
ENTRIES = (SMALL, LARGE, DOUBLE)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["show", *arguments])


def document(*arguments: str) -> dict[str, Any]:
    result = run("--json", *arguments)
    assert result.exit_code == 0, result.output
    files: list[dict[str, Any]] = json.loads(result.stdout)["files"]
    assert len(files) == 1
    return files[0]


@pytest.fixture
def results(tmp_path: Path) -> str:
    path = tmp_path / "results.csv"
    path.write_text(format_results(this_build().validators, ENTRIES), encoding="utf-8")
    return str(path)


def test_each_winner_is_a_row_with_its_parts(results: str) -> None:
    result = run(results)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"{results}: results, 3 winners"
    assert lines[1] == "validators are this build's"
    row = next(line for line in lines if "m512" in line or " 512 " in line)
    assert row.split() == [
        *("GemmTunableOp_Float32", "float32", "512", "64", "16", "T", "bias", "tbT", "Default"),
        *("500", "us", "2.10", "GFLOP/s"),
    ]
    assert next(line for line in lines if "Float64" in line).split()[-2:] == ["-", "-"]


def test_json_has_every_fact_and_nothing_else_is_written(results: str) -> None:
    file = document(results)
    assert set(file) == {
        *("path", "kind", "validators", "matches_this_build", "differences", "winners", "untuned", "left_out"),
        *("undecided", "superseded", "bad_lines"),
    }
    assert file["kind"] == "results"
    assert file["matches_this_build"] is True
    assert file["differences"] == []
    assert file["winners"][0] == {
        "op": SMALL.op,
        "params": SMALL.params,
        "dtype": "float32",
        "device": "cpu",
        "m": 16,
        "n": 64,
        "k": 16,
        "batch": 1,
        "flags": "",
        "flops": 2 * 16 * 64 * 16,
        "kernel": SMALL.kernel,
        "time_ms": SMALL.time_ms,
    }
    assert [row["time_ms"] for row in file["winners"]] == [0.002, 0.5, None]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--sort", "op"], [SMALL, LARGE, DOUBLE]),
        (["--sort", "op", "--reverse"], [DOUBLE, LARGE, SMALL]),
        (["--sort", "m"], [SMALL, DOUBLE, LARGE]),
        (["--sort", "flops", "--reverse"], [LARGE, DOUBLE, SMALL]),
        (["--sort", "kernel"], [LARGE, SMALL, DOUBLE]),
        (["--sort", "time"], [SMALL, LARGE, DOUBLE]),
        (["--sort", "time", "--reverse"], [LARGE, SMALL, DOUBLE]),
        (["--sort", "speed", "--reverse"], [SMALL, LARGE, DOUBLE]),
        (["--where", "dtype=float32"], [SMALL, LARGE]),
        (["--where", "m>=32", "--where", "dtype=float32"], [LARGE]),
        (["--where", "kernel=host_*"], [SMALL, DOUBLE]),
        (["--where", "kernel=lt_*"], []),
        (["--limit", "2"], [SMALL, LARGE]),
        (["--limit", "0"], [SMALL, LARGE, DOUBLE]),
    ],
)
def test_rows_are_sorted_filtered_and_limited_as_asked(
    results: str, arguments: list[str], expected: list[Entry]
) -> None:
    file = document(results, *arguments)
    assert [row["params"] for row in file["winners"]] == [entry.params for entry in expected]


def test_what_was_left_out_is_said(results: str) -> None:
    assert "2 more rows left out; --limit 0 shows all" in run(results, "--limit", "1").stdout
    assert document(results, "--limit", "1")["left_out"] == 2
    assert "left out" not in run(results).stdout
    assert "1 of them fulfil the conditions" in run(results, "--where", "m=16").stdout


@pytest.mark.parametrize("condition", ["m", "size=3", "m>=x", "dtype<float32"])
def test_a_wrong_condition_is_a_usage_error_that_says_what_is_allowed(results: str, condition: str) -> None:
    result = run(results, "--where", condition)
    assert result.exit_code == 2
    assert "--where" in result.stderr


def test_a_file_of_another_build_is_shown_with_each_difference_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "foreign.csv"
    validators = [*this_build().validators[:-1], Validator("OTHER", "x")]
    path.write_text(format_results(validators, ENTRIES), encoding="utf-8")
    before = path.read_bytes(), path.stat().st_mtime_ns
    result = run(str(path))
    assert result.exit_code == 0
    missing = this_build().validators[-1]
    assert "differ from this build's" in result.stdout
    assert f"differs: {missing.name}: expected {missing.value!r}, found nothing" in result.stdout
    assert "differs: OTHER: expected nothing, found 'x'" in result.stdout
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["foreign.csv"]
    file = document(str(path))
    assert file["matches_this_build"] is False
    assert {"name": "OTHER", "expected": None, "found": ["x"]} in file["differences"]
    assert len(file["winners"]) == 3


def test_bad_lines_are_shown_with_number_reason_and_text(results: str) -> None:
    with Path(results).open("a", encoding="utf-8") as file:
        file.write("GemmTunableOp_Float32,taX,Default,1\nnonsense\n")
    number = len(this_build().validators) + len(ENTRIES) + 1
    text = run(results).stdout
    assert "2 lines could not be read:" in text
    assert f"  line {number + 1}: starts neither" in text
    assert "    nonsense" in text
    assert [line["number"] for line in document(results)["bad_lines"]] == [number, number + 1]
    assert "1 more line left out" in run(results, "--limit", "1").stdout


def test_an_untuned_file_is_recognised_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "anything"
    path.write_text(f"{SMALL.op},{SMALL.params}\n{DOUBLE.op},{DOUBLE.params}\n")
    text = run(str(path)).stdout
    assert text.startswith(f"{path}: untuned, 2 untuned signatures\n")
    assert "validators" not in text
    assert "kernel" not in text
    file = document(str(path), "--where", "dtype=float64")
    assert file["matches_this_build"] is None
    assert [row["params"] for row in file["untuned"]] == [DOUBLE.params]
    assert "kernel" not in file["untuned"][0]


@pytest.mark.parametrize(("text", "said"), [("", "empty, nothing in it yet"), ("x\n", "unknown, no line is one of")])
def test_a_file_that_says_nothing_is_shown_as_that(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(text)
    assert said in run(str(path)).stdout


@pytest.mark.parametrize(
    ("text", "code"), [("x\n", 1), ("", 0), ("GemmTunableOp_Float32,taN_m8_n8_k8_bias0_devcpu\nx\n", 0)]
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_exit_code_is_1_for_what_is_no_file_of_results_or_signatures(
    tmp_path: Path, text: str, code: int, options: tuple[str, ...]
) -> None:
    path = tmp_path / "ten.py"
    path.write_text(text, encoding="utf-8")
    assert run(str(path), *options).exit_code == code


def test_the_exit_code_is_1_when_a_file_cannot_be_read_and_the_others_are_shown(results: str, tmp_path: Path) -> None:
    result = run(str(tmp_path / "missing.csv"), str(tmp_path), results)
    assert result.exit_code == 1
    assert "missing.csv cannot be read: No such file" in result.stderr
    assert f"{tmp_path} cannot be read: not a regular file" in result.stderr
    assert "3 winners" in result.stdout
    files = json.loads(run("--json", str(tmp_path / "missing.csv"), results).stdout)["files"]
    assert files[0] == {"path": str(tmp_path / "missing.csv"), "error": "No such file or directory"}
    assert len(files[1]["winners"]) == 3


def test_hostile_text_is_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "evil\x1b[2J[bold].csv"
    lines = [
        "Validator,HOST_CPU,[red]x[/red]\x1b]0;title\x07",
        "\x1b[31mGemm[/]",
        "GemmTunableOp_Float32,\u202etaN,Default,1",
        "a\rb\x9b31m",
    ]
    path.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n")
    result = run(str(path))
    assert result.exit_code == 0
    assert all(line.isprintable() for line in result.stdout.split("\n"))
    assert "HOST_CPU: [red]x[/red]\\x1b]0;title\\x07" in result.stdout
    assert "\\x1b[31mGemm[/]" in result.stdout
    assert "\\xff\\xfe" in result.stdout


def test_older_lines_of_a_signature_are_counted_and_not_shown(results: str) -> None:
    with Path(results).open("a", encoding="utf-8") as file:
        file.write(f"{SMALL.op},{SMALL.params},Default,0.001\n")
    assert "1 older line replaced by newer ones" in run(results).stdout
    winner = next(row for row in document(results)["winners"] if row["params"] == SMALL.params)
    assert (winner["kernel"], winner["time_ms"]) == ("Default", 0.001)
