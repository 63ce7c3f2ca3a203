"""`tensorplay tune --again` says in words what stays, and what workers warn of."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.main import main
from tensorplay.database.csv_text import parse_results
from tensorplay.gemm import DEFAULT
from tensorplay.runtime.context import TuningContext

BATCH = ("GemmTunableOp_Float32", "taN_m24_n40_k16_bias0_devcpu_batch2")


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results file with a winner that cannot be measured by the default settings, and a line that is none."""
    monkeypatch.chdir(tmp_path)
    for name in ("FILENAME", "CANDIDATES", "FAMILIES"):
        monkeypatch.delenv(f"TP_TUNABLEOP_{name}", raising=False)
    context = TuningContext(environ={})
    context.override(*BATCH, DEFAULT)
    context.close()
    path = tmp_path / "tunableop_resultscpu.csv"
    with path.open("a", encoding="utf-8") as file:
        file.write("scribbled\n")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["tune", *arguments])


def test_a_winner_that_stays_and_a_warning_are_told_in_the_text_and_in_json(results: Path) -> None:
    result = run(results.name, "--again")
    assert result.exit_code == 1
    assert "the earlier winner stays" in " ".join(result.stdout.split())
    (warning,) = [line for line in result.stdout.splitlines() if line.startswith("warning: ")]
    (outcome,) = json.loads(run(results.name, "--again", "--json").stdout)
    assert (outcome["kernel"], outcome["kept"]) == (DEFAULT, "the earlier winner stays")
    assert warning == f"warning: {outcome['warnings'][0]}"
    assert [(entry.params, entry.kernel) for entry in parse_results(results.read_bytes()).entries] == [
        (BATCH[1], DEFAULT)
    ]
