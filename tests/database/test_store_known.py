"""What a process only read from a file does not go back there over what others have done to the file since."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.database.entries import Entries
from tensorplay.database.known import Known
from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.errors import RecordError

MakeEntry = Callable[..., Entry]
OTHERS = (Validator("BUILD", "another"),)


def known(*entries: Entry, files: list[str]) -> Known:
    return Known(Entries(entries), frozenset(files))


def test_a_present_line_counts_more_than_what_is_known(store: ResultsStore, path: Path, make_entry: MakeEntry) -> None:
    store.append(make_entry(1, time_ms=0.25))
    store.rewrite([make_entry(2)], known=known(make_entry(1), files=[str(path)]))
    assert sorted(store.load().entries) == [make_entry(1, time_ms=0.25), make_entry(2)]


def test_a_line_that_is_gone_stays_gone(store: ResultsStore, path: Path, header: str, make_entry: MakeEntry) -> None:
    store.rewrite([])
    store.rewrite([], known=known(make_entry(1), files=[str(path)]))
    assert path.read_text(encoding="utf-8") == header


@pytest.mark.parametrize("left", [None, b"", b"# only a comment\n", b"Valid"])
def test_a_file_that_is_gone_as_a_whole_gets_all(
    store: ResultsStore, path: Path, make_entry: MakeEntry, left: bytes | None
) -> None:
    if left is not None:
        path.write_bytes(left)
    store.rewrite([make_entry(2)], known=known(make_entry(1), make_entry(2, time_ms=9.0), files=[str(path)]))
    assert sorted(store.load().entries) == [make_entry(1), make_entry(2)]


def test_what_another_build_has_written_over_goes_to_the_sibling_beside_what_is_there(
    store: ResultsStore, path: Path, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    ResultsStore(str(path), OTHERS).append(make_entry(7))
    before = path.read_bytes()
    ResultsStore(str(path), validators).append(make_entry(1, time_ms=0.25))
    store.rewrite([], known=known(make_entry(1), make_entry(2), files=[str(path)]))
    assert sorted(store.load().entries) == [make_entry(1, time_ms=0.25), make_entry(2)]
    assert path.read_bytes() == before


def test_what_is_known_from_the_sibling_stays_gone_from_it_too(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    ResultsStore(str(path), OTHERS).append(make_entry(7))
    store.append(make_entry(1))
    sibling = store.load().files[0]
    store.rewrite([], drop=[make_entry(1).signature])
    store.rewrite([], known=known(make_entry(1), files=[sibling]))
    assert store.load().entries == []
    Path(sibling).unlink()
    store.rewrite([], known=known(make_entry(1), files=[sibling]))
    assert store.load().entries == [make_entry(1)]


def test_what_no_file_could_hold_is_refused_before_anything_is_written(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    path.write_bytes(b"# mine\n")
    with pytest.raises(RecordError):
        store.rewrite([], known=known(make_entry(1)._replace(params="taN"), files=[str(path)]))
    assert path.read_bytes() == b"# mine\n"


NUMBERS = st.sets(st.integers(1, 5))


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_of_each_signature_what_is_given_counts_then_the_file_then_what_is_known_of_a_file_that_is_gone(
    told: set[int], given_too: set[int], read: set[int], dropped: set[int], is_gone: bool
) -> None:
    def entries(numbers: set[int], kernel: str) -> list[Entry]:
        return [Entry("GemmTunableOp_Float32", f"taN_m{m}_n8_k8_bias0_dev0", kernel, 1.0) for m in numbers]

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "results.csv").resolve())
        store = ResultsStore(path, OTHERS)
        if not is_gone:
            store.rewrite(entries(told, "host_numpy"))
        drop = [entry.signature for entry in entries(dropped - read, "Default")]
        store.rewrite(
            entries(given_too, "host_scipy"), drop=drop, known=known(*entries(read, "host_mkl_threads1"), files=[path])
        )
        expected = {entry.params: entry.kernel for entry in entries(read if is_gone else set(), "host_mkl_threads1")}
        kept = set() if is_gone else told - (dropped - read)
        for entry in [*entries(kept, "host_numpy"), *entries(given_too, "host_scipy")]:
            expected[entry.params] = entry.kernel
        assert {entry.params: entry.kernel for entry in store.load().entries} == expected
