import os
import threading
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.record import Entry
from tensorplay.database.results import Results
from tensorplay.gemm import Signature

MakeEntry = Callable[..., Entry]

ENTRIES = st.builds(
    Entry,
    st.sampled_from(["GemmTunableOp_Float32", "GemmTunableOp_Tf32"]),
    st.sampled_from([f"taN_m{m}_n8_k8_bias0_devcpu" for m in range(1, 5)]),
    st.sampled_from(["Default", "host_numpy"]),
    st.sampled_from([0.0, 0.5, 1.5]),
)


class Merge(NamedTuple):
    entries: list[Entry]
    overwrite: bool

    def apply(self, results: Results, model: dict[Signature, Entry]) -> bool:
        newest = {entry.signature: entry for entry in self.entries}
        wins = {key: entry for key, entry in newest.items() if self.overwrite or key not in model}
        changed = {key for key, entry in wins.items() if model.get(key) != entry}
        model.update(wins)
        assert results.merge(self.entries, overwrite=self.overwrite) == len(changed)
        return bool(changed)


class Put(NamedTuple):
    entry: Entry

    def apply(self, results: Results, model: dict[Signature, Entry]) -> bool:
        changed = model.get(self.entry.signature) != self.entry
        model[self.entry.signature] = self.entry
        results.put(self.entry)
        return changed


class Remove(NamedTuple):
    entry: Entry

    def apply(self, results: Results, model: dict[Signature, Entry]) -> bool:
        known = model.pop(self.entry.signature, None) is not None
        assert results.remove(self.entry.signature) == known
        return known


STEPS = st.one_of(
    st.builds(Merge, st.lists(ENTRIES, max_size=4), st.booleans()), st.builds(Put, ENTRIES), st.builds(Remove, ENTRIES)
)


@given(st.lists(STEPS, max_size=12), ENTRIES)
def test_any_sequence_of_changes_gives_what_a_plain_dictionary_gives(
    steps: list[Merge | Put | Remove], probe: Entry
) -> None:
    results = Results()
    model: dict[Signature, Entry] = {}
    for step in steps:
        before = results.revision
        changed = step.apply(results, model)
        assert (results.revision > before) == changed
        assert results.revision >= before
        assert results.entries() == sorted(model.values())
        assert len(results) == len(model)
        assert results.get(probe.signature) == model.get(probe.signature)


def test_memory_wins_over_a_file_unless_told_to_overwrite(make_entry: MakeEntry) -> None:
    results = Results()
    results.put(make_entry(8, time_ms=1.0))
    assert results.merge([make_entry(8, time_ms=2.0), make_entry(9)], overwrite=False) == 1
    assert results.get(make_entry(8).signature) == make_entry(8, time_ms=1.0)
    assert results.merge([make_entry(8, time_ms=2.0)], overwrite=True) == 1
    assert results.get(make_entry(8).signature) == make_entry(8, time_ms=2.0)


def test_readers_never_fail_while_other_threads_write(make_entry: MakeEntry) -> None:
    results = Results()
    wanted = make_entry(1)
    results.put(wanted)
    done = threading.Event()
    seen: set[Entry | None] = set()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                seen.add(results.get(wanted.signature))
                len(results)
                assert wanted in results.entries()
        except (RuntimeError, AssertionError) as error:
            failures.append(error)

    def write(start: int) -> None:
        for m in range(start, start + 300):
            results.put(make_entry(m))

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write, args=(start,)) for start in (1000, 2000)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not failures
    assert seen == {wanted}
    assert len(results) == 601
    assert results.revision == 601


def test_a_child_forked_while_a_writer_holds_the_lock_can_write(
    run_script: Callable[..., str], make_entry: MakeEntry
) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system cannot fork")
    script = """
import threading
from tensorplay.database.results import Results
results = Results()
reached, release = threading.Event(), threading.Event()
def hold():
    with results._lock:
        reached.set(); release.wait()
thread = threading.Thread(target=hold); thread.start(); reached.wait()
child = os.fork()
if child == 0:
    results.put(entry(2))
    os._exit(40 + len(results))
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
release.set(); thread.join()
print(status)
"""
    assert run_script(script).strip() == "41"
