import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tensorplay.backends.cublaslt.library import available
from tensorplay.cli import this_build as this_build_module
from tensorplay.cli.main import main
from tensorplay.cli.this_build import this_build
from tensorplay.database.csv_text import format_results
from tensorplay.database.filename import sibling_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.validators import digest
from tensorplay.runtime.settings_table import SETTINGS

ENTRY = Entry("GemmTunableOp_Float32", "taN_m16_n64_k16_bias0_devcpu", "Default", 0.002)
RESULTS = "tunableop_resultscpu.csv"
UNTUNED = "tunableop_untunedcpu.csv"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder, in an environment without our variables."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TP_TUNABLEOP_")]:
        monkeypatch.delenv(name)


def run(*arguments: str, **environ: str) -> Result:
    before = snapshot()
    result = CliRunner().invoke(main, ["doctor", *arguments], env={f"TP_TUNABLEOP_{k}": v for k, v in environ.items()})
    assert snapshot() == before, "the doctor made or changed a file"
    return result


def snapshot() -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in Path.cwd().rglob("*")}


def document(**environ: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("--json", **environ).stdout)
    return found


def write_results(name: str, validators: tuple[Validator, ...] | None = None) -> None:
    Path(name).write_text(format_results(validators or this_build().validators, [ENTRY]), encoding="utf-8")


def foreign() -> tuple[Validator, ...]:
    first, *rest = this_build().validators
    return (*rest, Validator(first.name, "another"))


def sibling() -> str:
    return sibling_name(RESULTS, digest(this_build().validators))


def test_nothing_is_wrong_in_an_empty_folder() -> None:
    result = run()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[-1] == "nothing is wrong"
    assert "note: the feature is off" in result.stdout
    assert "does not exist yet, writable, new winners go here" in result.stdout
    assert f"results: {Path.cwd() / RESULTS}" in result.stdout
    assert f"untuned: {Path.cwd() / UNTUNED}" in result.stdout


def test_device_libraries_and_validators_are_shown() -> None:
    text = run().stdout
    for said in ("device: cpu (backend host)", "processor: ", "python: ", "numpy: ", "blas: ", "cuda-bindings: "):
        assert said in text
    for validator in this_build().validators:
        assert f"{validator.name}: {validator.value}" in text


needs_no_gpu = pytest.mark.skipif(available() is None, reason="a GPU can be used here")


@needs_no_gpu
def test_it_says_why_no_gpu_is_used() -> None:
    reason = available()
    assert f"  gpu: not used: {reason}" in run().stdout.splitlines()
    assert document()["machine"]["why_no_gpu"] == reason


def test_libraries_of_arrays_on_a_gpu_are_listed_where_they_are_installed_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("torch", "2.99.0"), ("nvidia_cublas", "13.9.9.9"), ("cupy_cuda13x", "14.9.0")):
        folder = tmp_path / "installed" / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (tmp_path / "installed" / f"{name}.py").write_text("raise AssertionError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    lines = run().stdout.splitlines()
    for said in ("  torch: 2.99.0", "  nvidia-cublas: 13.9.9.9", "  cupy-cuda13x: 14.9.0"):
        assert said in lines
    assert "  cupy-cuda11x:" not in "\n".join(lines)
    assert document()["machine"]["on_a_gpu"]["torch"] == "2.99.0"


def test_every_setting_is_shown_with_value_origin_and_variable() -> None:
    text = run(MAX_TUNING_SAMPLES="7").stdout
    rows = {line.split()[0]: line.split() for line in text.splitlines() if "TP_TUNABLEOP_" in line and line.split()}
    for setting in SETTINGS:
        assert rows[setting.name][-2:] == [
            "environment" if setting.name == "max_tuning_samples" else "default",
            setting.variable,
        ]
    assert rows["max_tuning_samples"][1] == "7"


def test_the_settings_are_explained_from_their_declarations() -> None:
    result = run("--settings")
    assert result.exit_code == 0
    for setting in SETTINGS:
        assert setting.variable in result.stdout
        assert setting.help in result.stdout
        assert setting.allowed in result.stdout
    assert "nothing is wrong" not in result.stdout


def test_an_ignored_variable_is_wrong_and_the_exit_code_is_1() -> None:
    result = run(ENABLE="1", MAX_TUNING_SAMPLES="-3")
    assert result.exit_code == 1
    assert "2 things are wrong:" in result.stdout
    assert "did you mean TP_TUNABLEOP_ENABLED?" in result.stdout
    assert "MAX_TUNING_SAMPLES='-3' is ignored: allowed: an integer from 0" in result.stdout
    assert {problem["variable"] for problem in document(ENABLE="1")["ignored"]} == {"TP_TUNABLEOP_ENABLE"}


def test_a_good_file_is_counted() -> None:
    write_results(RESULTS)
    Path(UNTUNED).write_text(f"{ENTRY.op},{ENTRY.params}\n")
    result = run(ENABLED="1")
    assert result.exit_code == 0
    assert "1 winner, writable, new winners go here" in result.stdout
    assert "1 untuned signature, writable" in result.stdout
    assert "note: " not in result.stdout


def test_the_configured_names_are_looked_at() -> None:
    Path("tuned").mkdir()
    write_results("tuned/mycpu.csv")
    files = document(FILENAME="tuned/my.csv", UNTUNED_FILENAME="tuned/un%d.csv")["files"]
    assert [file["path"] for file in files] == [
        str(Path.cwd() / name) for name in ("tuned/mycpu.csv", "tuned/uncpu.csv")
    ]
    assert files[0]["winners"] == 1


def test_a_file_of_another_build_is_wrong_with_each_difference_until_there_is_a_sibling() -> None:
    write_results(RESULTS, foreign())
    result = run(ENABLED="1")
    assert result.exit_code == 1
    name, value = this_build().validators[0]
    assert f"{name}: expected {value!r}, found 'another'" in result.stdout
    assert "another build's, not used" in result.stdout
    assert "tune again" in result.stdout
    write_results(sibling())
    result = run(ENABLED="1")
    assert result.exit_code == 0
    assert f"this build's sibling {Path.cwd() / sibling()} has 1 winner" in result.stdout
    assert [file["role"] for file in document()["files"]] == ["results", "results, this build's", "untuned"]


def test_bad_lines_are_wrong_with_their_numbers() -> None:
    write_results(RESULTS)
    with Path(RESULTS).open("a") as file:
        file.write("broken\n" * 12)
    number = len(this_build().validators) + 2
    result = run()
    assert result.exit_code == 1
    assert f"line {number}: starts neither" in result.stdout
    assert "2 more lines could not be read" in result.stdout
    assert "12 lines of" in result.stdout
    assert len(document()["files"][0]["bad_lines"]) == 12


def test_a_folder_in_the_place_of_a_file_and_a_pipe_are_wrong() -> None:
    Path(RESULTS).mkdir()
    os.mkfifo(UNTUNED)
    result = run(ENABLED="1")
    assert result.exit_code == 1
    assert f"{RESULTS} cannot be read: it is not a regular file" in result.stdout
    assert f"{UNTUNED} cannot be read: it is not a regular file" in result.stdout


@pytest.mark.parametrize("enabled", ["0", "1"])
def test_a_missing_folder_is_wrong_where_winners_would_go(enabled: str) -> None:
    assert run(FILENAME="nowhere/my.csv", TUNING="0", ENABLED=enabled).exit_code == 0
    result = run(FILENAME="nowhere/my.csv", ENABLED=enabled)
    assert result.exit_code == 1
    assert f"winners cannot be written to {Path.cwd() / 'nowhere/mycpu.csv'}" in result.stdout


def test_a_missing_folder_of_the_log_is_wrong() -> None:
    result = run(VERBOSE="1", VERBOSE_FILENAME="nowhere/log.txt")
    assert result.exit_code == 1
    assert "diagnostics cannot be written" in result.stdout


def test_json_has_every_section_and_nothing_else_is_written() -> None:
    write_results(RESULTS)
    found = document(ENABLED="1", TUNING="0")
    assert set(found) == {
        *("ok", "device", "machine", "settings", "ignored", "files", "validators", "notes", "findings"),
    }
    assert found["ok"] is True
    assert found["device"] == {
        "name": "cpu",
        "backend": "host",
        "sources": list(this_build().sources),
        "missing_sources": list(this_build().missing_sources),
    }
    facts = {"python", "processor", "cores", "usable_cores", "numpy", "blas", "optional", "on_a_gpu", "why_no_gpu"}
    assert facts <= set(found["machine"])
    assert [setting["name"] for setting in found["settings"]] == [setting.name for setting in SETTINGS]
    assert {"value", "origin", "variable", "default", "help", "allowed"} <= set(found["settings"][0])
    assert found["files"][0] == {
        "role": "results",
        "path": str(Path.cwd() / RESULTS),
        "exists": True,
        "readable": True,
        "writable": True,
        "problem": None,
        "kind": "results",
        "winners": 1,
        "untuned": 0,
        "undecided": 0,
        "matches_this_build": True,
        "differences": [],
        "bad_lines": [],
        "new_winners_go_here": True,
    }
    assert found["notes"] == ["tuning is off: recorded winners are replayed, and nothing is measured"]
    failing = document(ENABLE="1")
    assert failing["ok"] is False
    assert set(failing["findings"][0]) == {"what", "remedy"}


@pytest.mark.parametrize("has_scipy", [False, True])
def test_only_sources_that_can_offer_are_listed_and_those_asked_for_in_vain_are_wrong(
    has_scipy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_build_module, "_IS_HERE", {"scipy": lambda: has_scipy, "mkl": lambda: False})
    result = run(SOURCES="scipy")
    assert result.exit_code == int(not has_scipy)
    said = "numpy, scipy (not installed: mkl)" if has_scipy else "numpy (not installed: scipy, mkl)"
    assert f"  sources of candidates: {said}" in result.stdout.splitlines()
    assert ("sources names scipy, which is not installed" in result.stdout) is not has_scipy
    assert run(SOURCES="numpy").exit_code == 0


@pytest.mark.parametrize(
    ("named", "remedy"),
    [
        ("tuned.csv", "rename it to tunedcpu.csv"),
        ("tunedcpu.csv", "set TP_TUNABLEOP_FILENAME=tuned.csv"),
        ("cpu.csv", "set TP_TUNABLEOP_FILENAME=%d.csv"),
    ],
)
def test_a_file_that_is_not_read_since_the_ordinal_is_inserted_is_wrong(named: str, remedy: str) -> None:
    write_results(named)
    means = f"{named.removesuffix('.csv')}cpu.csv"
    result = run(FILENAME=named, ENABLED="1")
    assert result.exit_code == 1
    (finding,) = document(FILENAME=named)["findings"]
    assert finding["what"] == (
        f"{Path.cwd() / named} is there and is not read: TP_TUNABLEOP_FILENAME={named} means {Path.cwd() / means}, "
        "which is not there"
    )
    assert finding["remedy"].startswith(remedy)
    write_results(means)
    assert run(FILENAME=named, ENABLED="1").exit_code == 0


def test_hostile_text_is_shown_as_text() -> None:
    name = "evil\x1b[2J[red].csv"
    Path("evil\x1b[2J[red]cpu.csv").write_bytes(b"Validator,HOST_CPU,\x1b]0;x\x07[bold]\n\x1b[31m\n\xff\n")
    result = run(FILENAME=name, SOURCES="x\x1b[2J", VERBOSE_FILENAME="\x9b31m", **{"A\x1b[2J": "\x1b[2J"})
    assert result.exit_code == 1
    assert all(line.isprintable() for line in result.stdout.split("\n"))
    assert "evil\\x1b[2J[red]cpu.csv" in result.stdout
