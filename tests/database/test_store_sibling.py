"""Two builds that share one configured name, and files that turn out to be somebody else's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tensorplay.database.filename import sibling_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.database.validators import digest

MakeEntry = Callable[..., Entry]


def test_two_builds_share_one_name_for_ever(
    path: Path, validators: tuple[Validator, ...], other_validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    builds = {"Default": validators, "host_numpy_threads2": other_validators}
    for run in range(1, 5):
        for kernel, build in builds.items():
            store = ResultsStore(str(path), build)
            report = store.load()
            assert sorted(report.entries) == [make_entry(m, kernel) for m in range(1, run)]
            assert report.refused == (build is other_validators)
            store.append(make_entry(run, kernel))
            store.rewrite([make_entry(run, kernel)])
    names = {child.name for child in path.parent.iterdir() if child.suffix == ".csv"}
    assert names == {path.name, Path(sibling_name(str(path), digest(other_validators))).name}


def test_the_first_foreign_append_needs_no_load(
    store: ResultsStore, other_store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.append(make_entry(1))
    before = path.read_bytes()
    other_store.append(make_entry(2))
    assert path.read_bytes() == before
    assert other_store.target != str(path)
    assert other_store.load().entries == [make_entry(2)]


def test_a_file_that_another_build_put_there_meanwhile_is_left_alone(
    store: ResultsStore, other_store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.load()
    store.append(make_entry(1))
    path.unlink()
    other_store.append(make_entry(2))
    foreign = path.read_bytes()
    store.append(make_entry(3))
    store.append(make_entry(4))
    assert path.read_bytes() == foreign
    assert sorted(store.load().entries) == [make_entry(3), make_entry(4)]


def test_a_file_edited_in_place_into_another_builds_is_left_alone(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.append(make_entry(1))
    path.write_bytes(path.read_bytes().replace(b"openblas 0.3", b"openblas 0.9") + b"# longer\n")
    foreign = path.read_bytes()
    store.append(make_entry(2))
    assert path.read_bytes() == foreign


def test_a_long_file_replaced_by_one_that_contradicts_itself_late_is_left_alone(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.rewrite([make_entry(m) for m in range(1000, 1200)])
    lines = path.read_bytes().splitlines(keepends=True)
    validator = b"Validator,HOST_BLAS,openblas 0.9\n"
    # As long as before up to the last line that was known, so that only the file itself is another.
    lines[150] = validator + b"#" * (len(lines[150]) - len(validator) - 1) + b"\n"
    lines.append(lines[10])
    other = path.with_suffix(".new")
    other.write_bytes(b"".join(lines))
    other.replace(path)
    foreign = path.read_bytes()
    store.append(make_entry(2))
    assert path.read_bytes() == foreign


def test_a_contradictory_validator_added_at_the_end_is_seen_by_the_next_append(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.append(make_entry(1))
    with path.open("a", encoding="utf-8") as file:
        file.write("Validator,HOST_BLAS,openblas 0.9\n")
    foreign = path.read_bytes()
    store.append(make_entry(2))
    assert path.read_bytes() == foreign
    assert store.load().entries == [make_entry(2)]


def test_the_file_that_is_written_has_the_last_word(
    store: ResultsStore, other_store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    other_store.append(make_entry(1))
    store.append(make_entry(1, kernel="host_numpy_threads2"))
    store.append(make_entry(2, kernel="host_numpy_threads2"))
    path.unlink()
    # The configured name is free again: from here on it is written, and the sibling is only read.
    assert [entry.kernel for entry in store.load().entries] == ["host_numpy_threads2"] * 2
    assert store.target == str(path)
    store.append(make_entry(1))
    assert sorted(store.load().entries) == [make_entry(1), make_entry(2, kernel="host_numpy_threads2")]


def test_what_is_forgotten_is_forgotten_in_both_files(
    store: ResultsStore, other_store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    other_store.append(make_entry(9))
    store.append(make_entry(1))
    store.append(make_entry(2))
    path.unlink()
    store.load()
    store.append(make_entry(1))
    store.rewrite([], drop={make_entry(1).signature})
    assert store.load().entries == [make_entry(2)]


def test_forgetting_never_touches_another_builds_file(
    store: ResultsStore, other_store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    other_store.append(make_entry(1))
    foreign = path.read_bytes()
    store.append(make_entry(1))
    store.rewrite([], drop=[make_entry(1).signature])
    assert path.read_bytes() == foreign
    assert store.load().entries == []
    assert other_store.load().entries == [make_entry(1)]


def test_a_sibling_with_foreign_validators_is_reported_and_left_alone(
    store: ResultsStore, other_store: ResultsStore, path: Path, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    other_store.append(make_entry(1))
    sibling = Path(sibling_name(str(path), digest(validators)))
    sibling.write_bytes(path.read_bytes())
    report = store.load()
    assert (report.entries, report.files) == ([], ())
    assert "HOST_BLAS: expected 'openblas 0.3', found 'openblas 0.4'" in report.problems[0]
    with pytest.raises(FileExistsError, match="another build"):
        store.append(make_entry(2))
    assert sibling.read_bytes() == path.read_bytes()


def test_bad_lines_name_the_file_that_they_stand_in(
    store: ResultsStore, other_store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    other_store.append(make_entry(1))
    store.append(make_entry(2))
    for file in (path, Path(store.target)):
        with file.open("a", encoding="utf-8") as lines:
            lines.write("nonsense\n")
    report = store.load()
    assert [(bad.path, bad.number, bad.text) for bad in report.bad_lines] == [(store.target, 5, "nonsense")]


def test_every_order_of_validators_is_the_same_build(
    path: Path, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    ResultsStore(str(path), validators).append(make_entry(1))
    turned = ResultsStore(str(path), tuple(reversed(validators)))
    assert turned.load().entries == [make_entry(1)]
    turned.append(make_entry(2))
    assert len(ResultsStore(str(path), validators).load().entries) == 2
