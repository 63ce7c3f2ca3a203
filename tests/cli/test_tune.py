"""`tensorplay tune` on this machine's host backend, with real workers."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.main import main
from tensorplay.database.csv_text import parse_results
from tensorplay.gemm import Signature

OP = "GemmTunableOp_Float32"
SMALL = Signature(OP, "taN_m24_n40_k16_bias0_devcpu")


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FILENAME", "CANDIDATES", "FAMILIES"):
        monkeypatch.delenv(f"TP_TUNABLEOP_{name}", raising=False)
    monkeypatch.setenv("TP_TUNABLEOP_MAX_TUNING_SAMPLES", "9")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["tune", *arguments])


def test_the_untuned_file_of_the_folder_is_measured_and_recorded(tmp_path: Path) -> None:
    Path("tunableop_untunedcpu.csv").write_text(",".join(SMALL) + "\n", encoding="utf-8")
    result = run()
    assert result.exit_code == 0, result.output
    assert "1 of 1 signature measured" in result.stdout
    entries = parse_results((tmp_path / "tunableop_resultscpu.csv").read_bytes()).entries
    assert [entry.signature for entry in entries] == [SMALL]
    again = run("--json")
    assert json.loads(again.stdout)[0]["measured"] is False


def test_what_is_not_tunable_is_said_and_fails(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text(f"{OP},{SMALL.params}_batch2\n", encoding="utf-8")
    result = run(str(path), "--results", "mine.csv")
    assert result.exit_code == 1
    assert "FAMILIES=plan" in result.output
    assert not (tmp_path / "minecpu.csv").exists()


def test_no_file_and_no_signature_are_usage_errors(tmp_path: Path) -> None:
    assert run().exit_code == 2
    assert "RECORD_UNTUNED" in run().output
    (tmp_path / "empty.csv").touch()
    assert "no signatures" in run("empty.csv").output
    assert run("missing.csv").exit_code == 2
