from dataclasses import replace

import pytest

from tensorplay.cli.file_check import FileCheck
from tensorplay.cli.finding import FileUse, Finding, Misnamed, findings, notes
from tensorplay.cli.tuning_file import FileKind
from tensorplay.database.csv_text import BadLine
from tensorplay.database.validators import ValidatorMismatch
from tensorplay.runtime.environment import SettingProblem
from tensorplay.runtime.setting_kind import SettingValue
from tensorplay.runtime.settings_table import SETTINGS

VALUES: dict[str, SettingValue] = {setting.name: setting.default for setting in SETTINGS}
ON = VALUES | {"enabled": True}
DIFFERS = (ValidatorMismatch("HOST_CPU", "ours", ("theirs",)),)
BAD = (BadLine(7, b"x", "one field"),)


def file(role: str) -> FileCheck:
    return FileCheck(role=role, path=f"/d/{role}.csv", exists=False, readable=False, writable=True)


def found(role: str) -> FileCheck:
    kind = FileKind.UNTUNED if role == "untuned" else FileKind.RESULTS
    return replace(file(role), exists=True, readable=True, kind=kind, winners=3)


FILES = FileUse(file("results"), file("sibling"), file("untuned"), None, "/d/results.csv")


def having(role: str, check: FileCheck) -> FileUse:
    match role:
        case "results":
            return FILES._replace(results=check)
        case "sibling":
            return FILES._replace(sibling=check)
        case "untuned":
            return FILES._replace(untuned=check)
        case _:
            return FILES._replace(log=check)


def of(files: FileUse = FILES, values: dict[str, SettingValue] = ON) -> list[Finding]:
    return findings(values, [], ("numpy", "scipy"), files)


def test_nothing_is_wrong_before_the_first_file_and_with_a_good_one() -> None:
    assert of() == []
    assert of(FILES._replace(results=found("results"), untuned=found("untuned"))) == []


def test_an_ignored_variable_is_told_with_its_reason() -> None:
    problem = SettingProblem("TP_TUNABLEOP_ENABLE", "'1'", "no such setting; did you mean TP_TUNABLEOP_ENABLED?")
    (finding,) = findings(ON, [problem], (), FILES)
    assert finding == Finding(str(problem), "correct TP_TUNABLEOP_ENABLE, or unset it")


def test_sources_that_the_device_has_not_are_named() -> None:
    (finding,) = of(values=ON | {"sources": ("numpy", "cublaslt", "skinny")})
    assert "cublaslt, skinny" in finding.what
    assert "numpy, scipy" in finding.remedy


def test_sources_that_are_not_installed_are_named_apart() -> None:
    for asked, what in ((("scipy",), "scipy, which is not"), (("mkl", "numpy", "scipy"), "mkl, scipy, which are not")):
        (finding,) = findings(ON | {"sources": asked}, [], ("numpy",), FILES, missing=("scipy", "mkl"))
        assert finding.what == f"sources names {what} installed"
        assert "name some of numpy, or" in finding.remedy
    assert findings(ON | {"sources": ("numpy",)}, [], ("numpy",), FILES, missing=("scipy", "mkl")) == []


def test_a_file_that_the_ordinal_hides_is_wrong() -> None:
    values = ON | {"filename": "results.csv"}
    (finding,) = of(FILES._replace(misnamed=Misnamed("/d/r.csv", "rename it")), values)
    assert "TP_TUNABLEOP_FILENAME=results.csv means /d/results.csv" in finding.what
    assert finding.remedy == "rename it"


def test_a_file_of_another_build_is_wrong_until_there_is_a_sibling() -> None:
    foreign = replace(found("results"), differences=DIFFERS)
    files = FILES._replace(results=foreign, target="/d/sibling.csv")
    (finding,) = of(files)
    assert "HOST_CPU: expected 'ours', found 'theirs'" in finding.what
    assert "/d/sibling.csv" in finding.remedy
    with_sibling = files._replace(sibling=found("sibling"))
    assert of(with_sibling) == []
    assert any("this build's sibling /d/sibling.csv has 3 winners" in note for note in notes(ON, with_sibling))


@pytest.mark.parametrize("role", ["results", "sibling", "untuned"])
def test_a_file_that_cannot_be_read_is_wrong(role: str) -> None:
    broken = replace(file(role), exists=True, problem="it is not a regular file")
    (finding,) = of(having(role, broken))
    assert finding.what == f"/d/{role}.csv cannot be read: it is not a regular file"


@pytest.mark.parametrize("role", ["results", "sibling", "untuned"])
def test_lines_that_cannot_be_used_are_counted(role: str) -> None:
    (finding,) = of(having(role, replace(found(role), bad_lines=BAD)))
    assert finding.what == f"1 line of /d/{role}.csv cannot be used; line 7: one field"


def test_the_lines_of_another_build_are_its_own_affair() -> None:
    foreign = replace(found("results"), differences=DIFFERS, bad_lines=BAD)
    assert of(FILES._replace(results=foreign, sibling=found("sibling"), target="/d/sibling.csv")) == []


def test_a_sibling_of_another_build_and_an_untuned_name_with_winners_are_wrong() -> None:
    (finding,) = of(FILES._replace(sibling=replace(found("sibling"), differences=DIFFERS)))
    assert "has this build's name and another's validators" in finding.what
    (finding,) = of(FILES._replace(untuned=replace(found("untuned"), kind=FileKind.RESULTS)))
    assert "is a results file" in finding.what


@pytest.mark.parametrize(
    ("role", "switch", "variable"),
    [
        ("results", "tuning", "TP_TUNABLEOP_FILENAME"),
        ("untuned", "record_untuned", "TP_TUNABLEOP_UNTUNED_FILENAME"),
        ("log", "verbose", "TP_TUNABLEOP_VERBOSE_FILENAME"),
    ],
)
def test_a_file_that_cannot_be_written_is_wrong_when_it_would_be_written(role: str, switch: str, variable: str) -> None:
    files = having(role, replace(file(role), writable=False))
    on = ON | {switch: 1 if switch == "verbose" else True}
    (finding,) = of(files, on)
    assert variable in finding.remedy
    assert of(files, on | {switch: 0 if switch == "verbose" else False}) == []


@pytest.mark.parametrize(
    ("values", "count"),
    [
        (VALUES, 0),
        (VALUES | {"filename": "/d/results.csv"}, 1),
        (VALUES | {"filename": "/d/results.csv", "tuning": False}, 0),
    ],
)
def test_a_named_file_that_cannot_be_written_is_wrong_before_the_feature_is_on(
    values: dict[str, SettingValue], count: int
) -> None:
    assert len(of(having("results", replace(file("results"), writable=False)), values)) == count


def test_the_target_is_what_must_be_writable() -> None:
    files = FILES._replace(results=replace(found("results"), writable=False), target="/d/sibling.csv")
    assert of(files) == []
    assert [finding.what for finding in of(files._replace(sibling=replace(file("sibling"), writable=False)))] == [
        "winners cannot be written to /d/sibling.csv"
    ]


@pytest.mark.parametrize(
    ("values", "said"),
    [(VALUES, "the feature is off"), (ON | {"tuning": False}, "tuning is off"), (ON, None)],
)
def test_switches_that_are_off_are_noted(values: dict[str, SettingValue], said: str | None) -> None:
    found_notes = list(notes(values, FILES))
    assert found_notes == [] if said is None else said in found_notes[0]
