"""Signal handlers that multiply while their own thread reads a list or adds to one: no lock keeps them apart."""

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tensorplay.database.record import Entry
from tensorplay.database.results import Results
from tensorplay.gemm import Signature
from tensorplay.measure.report import SelectionReport
from tensorplay.runtime import journal as journals
from tensorplay.runtime import ledger as ledgers
from tensorplay.runtime import rejections as rejection_lists
from tensorplay.runtime.counters import Counters
from tensorplay.runtime.journal import Journal
from tensorplay.runtime.ledger import Evidence, Ledger
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.rejections import Rejections
from tensorplay.runtime.resolution import Reason
from tensorplay.runtime.untuned_files import UntunedFiles

PACKAGE = str(Path(journals.__file__).parent.parent)
KNOWN, NEW, OTHER = (Signature("op", name) for name in ("known", "new", "other"))
EVIDENCE = Evidence(SelectionReport.not_measured("kernel", "why"))
Act = Callable[[], object]


def interrupted(prepare: Callable[[], tuple[Act, Act]]) -> list[Any]:
    """Return what an act does for each of its instructions, with the handler that comes with it right before that."""
    results: list[Any] = []
    for place in count():
        act, handler = prepare()
        passed = 0

        def trace(frame: FrameType, event: str, _: object, place: int = place, handler: Act = handler) -> Any:
            nonlocal passed
            if not frame.f_code.co_filename.startswith(PACKAGE):
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                if passed == place:
                    handler()
                passed += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            results.append(act())
        finally:
            sys.settrace(before)
        if passed <= place:
            assert place > 3, "nothing was interrupted"
            return results
    raise AssertionError("an act has an end")


@pytest.mark.parametrize("read", ["totals", "calls_made", "calls_without_winner"])
def test_counts_are_added_up_whatever_the_handler_calls(read: str) -> None:
    def prepare() -> tuple[Act, Act]:
        counters = Counters()
        counters.tally(KNOWN, Reason.FIRST_CHOICE).calls += 1
        counters.tally(OTHER, Reason.FIRST_CHOICE).calls += 1

        def handler() -> None:
            counters.tally(NEW, Reason.FIRST_CHOICE).calls += 1

        return getattr(counters, read), handler

    for each in interrupted(prepare):
        number = each if isinstance(each, int) else sum(each.values())
        assert number in {2, 3}


def test_a_tally_is_one_whatever_the_handler_calls() -> None:
    def prepare() -> tuple[Act, Act]:
        counters = Counters()
        return (
            lambda: counters.tally(KNOWN, Reason.REPLAYED) is counters.tally(KNOWN, Reason.REPLAYED),
            lambda: counters.tally(KNOWN, Reason.REPLAYED),
        )

    assert all(interrupted(prepare))


@pytest.mark.parametrize(
    "read",
    [lambda r: r.failed(KNOWN) == {"kernel"}, lambda r: len(r.of(KNOWN)) == 2, lambda r: len(r.listed()) in {2, 3}],
)
def test_rejections_are_read_whatever_the_handler_meets(read: Callable[[Rejections], bool]) -> None:
    def prepare() -> tuple[Act, Act]:
        rejections = Rejections(lambda: 1.0)
        rejections.fail(KNOWN, "kernel")
        for kernel in ("kernel", "other"):
            rejections.add(KNOWN, kernel, "why")

        def handler() -> None:
            rejections.fail(NEW, "kernel")
            rejections.add(NEW, "kernel", "why")

        return lambda: read(rejections), handler

    assert all(interrupted(prepare))


@pytest.mark.parametrize("handles", [lambda r: r.forgive(KNOWN, "other"), lambda r: r.fail(NEW, "kernel")])
def test_a_failed_kernel_is_known_whatever_the_handler_does(
    monkeypatch: pytest.MonkeyPatch, handles: Callable[[Rejections], object]
) -> None:
    monkeypatch.setattr(rejection_lists, "MOST_REJECTIONS", 2)

    def prepare() -> tuple[Act, Act]:
        rejections = Rejections()
        rejections.fail(OTHER, "kernel")
        rejections.fail(KNOWN, "other")

        def act() -> bool:
            rejections.fail(KNOWN, "kernel")
            return "kernel" in rejections.failed(KNOWN)

        return act, lambda: handles(rejections)

    assert all(interrupted(prepare))


@pytest.mark.parametrize("handles", [lambda journal: journal.note(NEW), Journal.note_many])
def test_what_changed_is_told_whatever_the_handler_changes(handles: Callable[[Journal], object]) -> None:
    def prepare() -> tuple[Act, Act]:
        journal = Journal()
        journal.note(OTHER)

        def act() -> bool:
            seen = journal.revision
            journal.note(KNOWN)
            changed = journal.since(seen)
            return changed is None or KNOWN in changed

        return act, lambda: handles(journal)

    assert all(interrupted(prepare))


@pytest.mark.parametrize("handles", [lambda journal: journal.note(NEW), Journal.note_many])
def test_a_full_journal_takes_changes_whatever_the_handler_changes(
    monkeypatch: pytest.MonkeyPatch, handles: Callable[[Journal], object]
) -> None:
    monkeypatch.setattr(journals, "MOST_CHANGES", 2)

    def prepare() -> tuple[Act, Act]:
        journal = Journal()
        journal.note(OTHER)
        journal.note(OTHER)

        def act() -> bool:
            journal.note(KNOWN)
            return journal.since(journal.revision) == frozenset()

        return act, lambda: handles(journal)

    interrupted(prepare)


@pytest.mark.parametrize("read", [Results.entries, Results.unsorted, list, len])
def test_winners_are_read_whatever_the_handler_records(read: Callable[[Results], Any]) -> None:
    def prepare() -> tuple[Act, Act]:
        results = Results()
        for op in ("op", "other"):
            results.put(Entry(op, "params", "kernel", 1.0))
        return lambda: read(results), lambda: results.put(Entry("new", "params", "kernel", 1.0))

    found = interrupted(prepare)
    assert {each if isinstance(each, int) else len(each) for each in found} == {2, 3}


@pytest.mark.parametrize("handles", ["learn", "try_again", "forget"])
def test_the_ledger_takes_facts_at_its_bounds_whatever_the_handler_does(
    monkeypatch: pytest.MonkeyPatch, handles: str
) -> None:
    monkeypatch.setattr(ledgers, "MOST_REPORTS", 1)
    monkeypatch.setattr(ledgers, "MOST_UNMEASURABLE", 1)

    def prepare() -> tuple[Act, Act]:
        ledger = Ledger(Listeners())

        def learn(signature: Signature) -> None:
            ledger.give_up(signature, "why")
            ledger.break_off(signature)
            ledger.keep_evidence(signature, EVIDENCE)

        learn(OTHER)
        handler = {
            "learn": lambda: learn(NEW),
            "try_again": ledger.try_again,
            "forget": lambda: ledger.forget(OTHER),
        }[handles]
        return lambda: learn(KNOWN), handler

    interrupted(prepare)


def test_what_is_pending_is_written_whatever_file_the_handler_writes(tmp_path: Path) -> None:
    signature = Signature("GemmTunableOp_Float32", "taN_m1_n8_k8_bias0_devcpu")

    def prepare() -> tuple[Act, Act]:
        files = UntunedFiles()
        for name in ("one.csv", "other.csv"):
            files.record(str(tmp_path / name), signature)
        return files.save_pending, lambda: files.record(str(tmp_path / "new.csv"), signature)

    interrupted(prepare)
    assert (tmp_path / "new.csv").read_text() == (tmp_path / "one.csv").read_text() == ",".join(signature) + "\n"
