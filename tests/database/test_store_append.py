import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.errors import RecordError

MakeEntry = Callable[..., Entry]


def test_a_missing_file_is_missing_and_nothing_is_wrong(store: ResultsStore, path: Path) -> None:
    report = store.load()
    assert (report.missing, report.refused, report.entries, report.problems) == (True, False, [], ())
    assert report.files == ()
    assert report.path == str(path) == store.target


def test_the_first_winner_makes_the_file_with_one_header(
    store: ResultsStore, path: Path, header: str, make_entry: MakeEntry
) -> None:
    for m in range(1, 4):
        store.append(make_entry(m))
    lines = "".join(f"GemmTunableOp_Float32,taN_m{m}_n8_k8_bias0_devcpu,Default,0.5\n" for m in range(1, 4))
    assert path.read_text(encoding="utf-8") == header + lines


def test_header_and_first_winner_are_one_write(
    store: ResultsStore, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []
    write = os.write

    def count(fd: int, data: bytes) -> int:
        writes.append(len(data))
        return write(fd, data)

    monkeypatch.setattr(os, "write", count)
    store.append(make_entry(1))
    store.append(make_entry(2))
    assert len(writes) == 2


def test_a_relative_path_is_fixed_when_the_store_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = ResultsStore("results.csv", validators)
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.append(make_entry(1))
    assert store.target == str(tmp_path / "results.csv")
    assert (tmp_path / "results.csv").exists()


def test_an_entry_that_no_file_could_give_back_is_refused_before_anything_is_written(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    with pytest.raises(RecordError):
        store.append(make_entry(1, kernel="a,b"))
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("length", [0, 1, 30, -40, -1])
def test_a_writer_killed_inside_its_header_leaves_a_new_file(
    store: ResultsStore, path: Path, header: str, make_entry: MakeEntry, length: int
) -> None:
    path.write_text(header[:length], encoding="utf-8")
    report = store.load()
    assert (report.refused, report.missing, report.bad_lines) == (False, False, ())
    store.append(make_entry(1))
    assert path.read_text(encoding="utf-8").startswith(header + "GemmTunableOp_Float32,taN_m1_")
    assert store.load().entries == [make_entry(1)]


@pytest.mark.parametrize("text", ["hello", "Validator,SOMETHING", "Validator,TP_TUNABLEOP_FORMAT,2"])
def test_any_other_torn_text_is_somebody_elses(
    store: ResultsStore, path: Path, make_entry: MakeEntry, text: str
) -> None:
    path.write_text(text, encoding="utf-8")
    store.append(make_entry(1))
    assert path.read_text(encoding="utf-8") == text
    assert store.load().entries == [make_entry(1)]


@pytest.mark.parametrize("cut", range(1, 60))
def test_no_cut_of_a_last_line_ever_becomes_another_winner(
    store: ResultsStore, path: Path, header: str, make_entry: MakeEntry, cut: int
) -> None:
    line = "GemmTunableOp_Float32,taN_m16_n8_k8_bias0_dev12_batch34,host_numpy_threads16,0.25"
    path.write_text(header + line[:-cut], encoding="utf-8")
    store.append(make_entry(1))
    report = store.load()
    whole = line[:-cut].endswith((",0", ",0.2"))
    assert [(entry.params, entry.kernel) for entry in report.entries if entry != make_entry(1)] == (
        [("taN_m16_n8_k8_bias0_dev12_batch34", "host_numpy_threads16")] if whole else []
    )
    assert report.bad_lines == ()
    kept = Path(f"{path}.rejected")
    assert (kept.read_text(encoding="utf-8") if kept.exists() else "") == ("" if whole else line[:-cut] + "\n")


@pytest.mark.parametrize("last", ["# note", "  ", "Validator,HOST_BLAS,openblas 0.3"])
def test_an_unended_line_of_another_kind_is_ended(
    store: ResultsStore, path: Path, header: str, make_entry: MakeEntry, last: str
) -> None:
    path.write_text(header + last, encoding="utf-8")
    store.append(make_entry(1))
    assert store.load().entries == [make_entry(1)]
    assert path.read_text(encoding="utf-8").startswith(header + last + "\n")


def test_a_line_torn_by_another_writer_between_two_appends_is_mended(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.append(make_entry(1))
    with path.open("a", encoding="utf-8") as file:
        file.write("GemmTunableOp_Float32,taN_m2_n8_k8_bias0_devcpu,Default,0.5\nGemmTunableOp_Float32,taN_m3_n8")
    store.append(make_entry(4))
    report = store.load()
    assert sorted(report.entries) == [make_entry(m) for m in (1, 2, 4)]
    assert report.bad_lines == ()


def test_an_editor_that_changes_the_file_in_place_glues_nothing(
    store: ResultsStore, path: Path, header: str, make_entry: MakeEntry
) -> None:
    store.append(make_entry(1))
    path.write_text(
        header + "GemmTunableOp_Float32,taN_m1_n8_k8_bias0_devcpu,host_numpy_threads2,0.5", encoding="utf-8"
    )
    store.append(make_entry(2))
    report = store.load()
    assert sorted(report.entries) == [make_entry(1, kernel="host_numpy_threads2"), make_entry(2)]
    assert report.bad_lines == ()


def test_an_editor_that_changes_a_long_file_near_its_end_glues_nothing(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.rewrite([make_entry(m) for m in range(1000, 1200)])
    store.append(make_entry(1))
    path.write_bytes(path.read_bytes().removesuffix(b"Default,0.5\n") + b"host_numpy_threads2,0.5")
    store.append(make_entry(2))
    report = store.load()
    assert make_entry(1, kernel="host_numpy_threads2") in report.entries
    assert make_entry(2) in report.entries
    assert (len(report.entries), report.bad_lines) == (202, ())


def test_a_file_removed_meanwhile_is_made_again_with_its_header(
    store: ResultsStore, path: Path, header: str, make_entry: MakeEntry
) -> None:
    store.append(make_entry(1))
    path.unlink()
    store.append(make_entry(2))
    assert path.read_text(encoding="utf-8").startswith(header)
    assert store.load().entries == [make_entry(2)]


def test_a_linked_file_is_written_where_the_link_leads(
    path: Path, tmp_path: Path, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "results.csv"
    path.symlink_to(real)
    linked, direct = ResultsStore(str(path), validators), ResultsStore(str(real), validators)
    linked.append(make_entry(1))
    direct.append(make_entry(2))
    linked.rewrite([make_entry(3)])
    assert path.is_symlink()
    assert [entry.params[5] for entry in sorted(direct.load().entries)] == ["1", "2", "3"]
    assert Path(f"{real}.lock").exists()
    assert not Path(f"{path}.lock").exists()


def test_a_load_leaves_no_full_read_to_the_first_append(
    path: Path,
    store: ResultsStore,
    validators: tuple[Validator, ...],
    make_entry: MakeEntry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ResultsStore(str(path), validators).rewrite([make_entry(m) for m in range(1, 2000)])
    store.load()
    read: list[int] = []
    pread = os.pread

    def count(fd: int, size: int, start: int) -> bytes:
        read.append(size)
        return pread(fd, size, start)

    monkeypatch.setattr(os, "pread", count)
    store.append(make_entry(5000))
    store.append(make_entry(5001))
    assert sum(read) < path.stat().st_size / 4
