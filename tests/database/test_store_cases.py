"""The shared cases of results files, and the kind that each stands for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.record import Entry
from tensorplay.database.store import ResultsStore

CASES = json.loads((Path(__file__).parents[1] / "data" / "cases" / "results_files.json").read_text(encoding="utf-8"))
READ = [case for case in CASES if case["read_file"]]
REFUSED = [case for case in CASES if not case["read_file"]]
NAME = "name"

MakeEntry = Callable[..., Entry]


def name_of(case: dict[str, Any]) -> str:
    return str(case[NAME])


def text_of(case: dict[str, Any], header: str) -> str:
    """Return the case's text, this build's validators in it with the line ends that the text has."""
    end = "\r\n" if "\r\n" in case["text"] else "\n"
    return str(case["text"]).replace("@VALIDATORS@", header.rstrip("\n").replace("\n", end))


def entries_of(case: dict[str, Any]) -> list[Entry]:
    return sorted(Entry(*fields) for fields in case["loaded"])


def check_read(store: ResultsStore, case: dict[str, Any]) -> None:
    report = store.load()
    assert (report.refused, report.missing, report.mismatches, report.problems) == (False, False, (), ())
    assert sorted(report.entries) == entries_of(case)
    assert [bad.text for bad in report.bad_lines] == case["bad_lines"]
    assert all(bad.reason and bad.path == report.path for bad in report.bad_lines)


@pytest.mark.parametrize("case", READ, ids=name_of)
def test_a_file_of_this_build_is_read(case: dict[str, Any], store: ResultsStore, path: Path, header: str) -> None:
    path.write_text(text_of(case, header), encoding="utf-8", newline="")
    check_read(store, case)
    lines = text_of(case, header).splitlines()
    assert [lines[bad.number - 1] for bad in store.load().bad_lines] == case["bad_lines"]


@pytest.mark.parametrize("case", READ, ids=name_of)
def test_reading_changes_nothing_on_disk(case: dict[str, Any], store: ResultsStore, path: Path, header: str) -> None:
    path.write_text(text_of(case, header), encoding="utf-8", newline="")
    before = path.read_bytes()
    store.load()
    assert path.read_bytes() == before
    assert [child.name for child in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("case", READ, ids=name_of)
@pytest.mark.parametrize("load_first", [True, False])
def test_one_more_winner_is_appended_and_costs_no_other(
    case: dict[str, Any], load_first: bool, store: ResultsStore, path: Path, header: str, make_entry: MakeEntry
) -> None:
    before = text_of(case, header)
    path.write_text(before, encoding="utf-8", newline="")
    if load_first:
        store.load()
    store.append(make_entry(77))
    report = store.load()
    assert sorted(report.entries) == sorted([*entries_of(case), make_entry(77)])
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\nGemmTunableOp_Float32,taN_m77_n8_k8_bias0_devcpu,Default,0.5\n")
    assert text.count("Validator,TP_TUNABLEOP_FORMAT,1") == 1
    torn = not before.endswith("\n") and before.splitlines()[-1:] == case["bad_lines"][-1:] != []
    kept = Path(f"{path}.rejected")
    assert kept.exists() == torn
    if torn:
        assert kept.read_text(encoding="utf-8") == case["bad_lines"][-1] + "\n"
        assert case["bad_lines"][-1] not in text.splitlines()


@pytest.mark.parametrize("case", READ, ids=name_of)
def test_a_rewrite_keeps_winners_and_moves_bad_lines_out(
    case: dict[str, Any], store: ResultsStore, path: Path, header: str
) -> None:
    path.write_text(text_of(case, header), encoding="utf-8", newline="")
    store.rewrite([])
    check_read(store, case | {"bad_lines": []})
    kept = Path(f"{path}.rejected")
    assert (kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []) == case["bad_lines"]
    rewritten = path.read_bytes()
    store.rewrite([])
    assert path.read_bytes() == rewritten


@pytest.mark.parametrize("case", REFUSED, ids=name_of)
def test_a_refused_file_stays_byte_for_byte_whatever_is_recorded(
    case: dict[str, Any], store: ResultsStore, path: Path, header: str, make_entry: MakeEntry
) -> None:
    path.write_text(text_of(case, header), encoding="utf-8", newline="")
    before = path.read_bytes()
    report = store.load()
    assert (report.refused, report.entries, report.bad_lines) == (True, [], ())
    assert report.mismatches
    store.append(make_entry(77))
    store.rewrite([make_entry(78)], drop={make_entry(8).signature})
    assert path.read_bytes() == before
    assert sorted(store.load().entries) == [make_entry(77), make_entry(78)]
    assert not Path(f"{path}.rejected").exists()


CHANGES: dict[str, Callable[[str, str], str]] = {
    "crlf": lambda header, entries: (header + entries).replace("\n", "\r\n"),
    "bom": lambda header, entries: "\ufeff" + header + entries,
    "comments": lambda header, entries: "# note\n \t \n" + (header + entries).replace("\n", "\n# note\n\n"),
    "validators_last": lambda header, entries: entries + header,
    "validators_last_unended": lambda header, entries: entries + header.rstrip("\n"),
    "validators_twice": lambda header, entries: header + header + entries,
}


@pytest.mark.parametrize(
    ("case", "change"),
    [
        pytest.param(case, change, id=f"{case[NAME]}-{change}")
        for case in READ
        for change in CHANGES
        # What follows an unended line would be glued to it.
        if case["text"].endswith("\n") or (case["text"] and "last" not in change)
    ],
)
def test_what_does_not_matter_in_one_file_matters_in_none(
    case: dict[str, Any], change: str, store: ResultsStore, path: Path, header: str
) -> None:
    entries = text_of(case, header).replace("\r\n", "\n").removeprefix("\ufeff").replace(header, "")
    path.write_text(CHANGES[change](header, entries), encoding="utf-8", newline="")
    check_read(store, case)


@pytest.mark.parametrize("case", [case for case in READ if "Gemm" in case["text"]], ids=name_of)
def test_a_file_with_carriage_returns_alone_is_one_line_and_not_trusted(
    case: dict[str, Any], store: ResultsStore, path: Path, header: str
) -> None:
    text = text_of(case, header).replace("\r\n", "\n").lstrip("\ufeff#").replace("\n", "\r")
    path.write_text(text, encoding="utf-8", newline="")
    report = store.load()
    assert report.entries == []
    assert report.refused


@pytest.mark.parametrize("dropped", range(3))
def test_every_missing_validator_is_named(store: ResultsStore, path: Path, header: str, dropped: int) -> None:
    lines = header.splitlines(keepends=True)
    missing = lines.pop(dropped).split(",")[1]
    path.write_text("".join(lines) + "# end\n", encoding="utf-8")
    report = store.load()
    assert report.refused
    assert [mismatch.name for mismatch in report.mismatches] == [missing]
