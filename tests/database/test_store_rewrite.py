import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature

MakeEntry = Callable[..., Entry]


def test_a_rewrite_sorts_and_keeps_what_others_wrote(
    store: ResultsStore, path: Path, header: str, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    store.append(make_entry(3))
    ResultsStore(str(path), validators).append(make_entry(1))
    store.rewrite([make_entry(2), make_entry(3, time_ms=0.25)])
    assert path.read_text(encoding="utf-8") == header + "".join(
        f"GemmTunableOp_Float32,taN_m{m}_n8_k8_bias0_devcpu,Default,{time}\n"
        for m, time in ((1, "0.5"), (2, "0.5"), (3, "0.25"))
    )


def test_a_rewrite_of_nothing_makes_a_file_that_only_says_whose_it_is(
    store: ResultsStore, path: Path, header: str
) -> None:
    store.rewrite([])
    assert path.read_text(encoding="utf-8") == header
    assert not store.load().missing


def test_dropped_signatures_go_unless_they_are_given(store: ResultsStore, make_entry: MakeEntry) -> None:
    for m in (1, 2, 3):
        store.append(make_entry(m))
    store.rewrite([make_entry(2, time_ms=0.25)], drop=[make_entry(1).signature, make_entry(2).signature])
    assert sorted(store.load().entries) == [make_entry(2, time_ms=0.25), make_entry(3)]


def test_comments_stay_at_the_top(store: ResultsStore, path: Path, header: str, make_entry: MakeEntry) -> None:
    path.write_text(f"\ufeff# one\r\n{header}\r\n  # two\n", encoding="utf-8", newline="")
    store.rewrite([make_entry(1)])
    assert path.read_text(encoding="utf-8").startswith("# one\n  # two\n" + header)
    assert store.load().entries == [make_entry(1)]


def test_malformed_lines_are_kept_aside_once_each_and_byte_for_byte(
    store: ResultsStore, path: Path, header: str, make_entry: MakeEntry
) -> None:
    for _ in range(2):
        path.write_bytes(header.encode() + b"nonsense\n# caf\xe9\r\nnonsense\nGemmTunableOp_Float32,torn")
        store.rewrite([make_entry(1)])
    assert Path(f"{path}.rejected").read_bytes() == b"nonsense\n# caf\xe9\nGemmTunableOp_Float32,torn\n"
    assert store.load().bad_lines == ()


def test_a_rewrite_without_change_does_not_touch_the_file(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.rewrite([make_entry(1)])
    before = path.stat()
    store.rewrite([make_entry(1)])
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_bad_entry_is_refused_before_anything_is_written(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    store.append(make_entry(1))
    before = path.read_bytes()
    with pytest.raises(RecordError):
        store.rewrite([make_entry(2), make_entry(3)._replace(params="taN")])
    assert path.read_bytes() == before


def test_an_append_after_a_rewrite_goes_to_the_new_file(
    store: ResultsStore, path: Path, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    store.append(make_entry(1))
    ResultsStore(str(path), validators).rewrite([make_entry(2)])
    store.append(make_entry(3))
    assert sorted(store.load().entries) == [make_entry(m) for m in (1, 2, 3)]


BUILDS = {name: (Validator("FORMAT", "1"), Validator("BUILD", name)) for name in ("one", "two")}
WRITERS = st.sampled_from([(build, number) for build in BUILDS for number in (0, 1)])
SIZES = st.sets(st.integers(1, 4), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("append"), WRITERS, st.integers(1, 4)),
    st.tuples(st.just("rewrite"), WRITERS, SIZES, SIZES),
    st.tuples(st.just("load"), WRITERS),
    st.tuples(st.just("tear"), WRITERS),
)


@given(st.lists(STEPS, max_size=10))
@settings(max_examples=60, deadline=None)
def test_any_sequence_of_writes_by_two_builds_keeps_what_plain_dictionaries_keep(
    steps: list[tuple[str, tuple[str, int], *tuple[object, ...]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/results.csv"
        stores = {(build, n): ResultsStore(path, BUILDS[build]) for build in BUILDS for n in (0, 1)}
        models: dict[str, dict[Signature, Entry]] = {build: {} for build in BUILDS}
        for count, (action, writer, *arguments) in enumerate(steps):
            apply(action, stores[writer], models[writer[0]], count, arguments)
            for build, model in models.items():
                report = ResultsStore(path, BUILDS[build]).load()
                assert sorted(report.entries) == sorted(model.values())
                assert not report.problems


def apply(action: str, store: ResultsStore, model: dict[Signature, Entry], count: int, arguments: list[object]) -> None:
    def entry(m: object) -> Entry:
        return Entry("GemmTunableOp_Float32", f"taN_m{m}_n8_k8_bias0_devcpu", "Default", float(count))

    if action == "load":
        store.load()
    elif action == "append":
        store.append(entry(arguments[0]))
        model[entry(arguments[0]).signature] = entry(arguments[0])
    elif action == "rewrite":
        given, dropped = arguments
        assert isinstance(given, set)
        assert isinstance(dropped, set)
        store.rewrite(map(entry, given), drop={entry(m).signature for m in dropped})
        for m in dropped:
            model.pop(entry(m).signature, None)
        model.update((entry(m).signature, entry(m)) for m in given)
    elif model:
        with Path(store.target).open("ab") as file:
            file.write(b"GemmTunableOp_Float32,taN_m")
