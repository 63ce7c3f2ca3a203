"""What a process learns is told once, and forgotten when asked."""

from collections.abc import Mapping

import pytest

from tensorplay.gemm import Signature
from tensorplay.measure.report import SelectionReport
from tensorplay.runtime import ledger as ledgers
from tensorplay.runtime.ledger import MOST_REPORTS, Evidence, Ledger
from tensorplay.runtime.listeners import Listeners

ONE, OTHER = Signature("op", "one"), Signature("op", "other")


def test_each_fact_is_counted_and_told_the_first_time_only() -> None:
    listeners = Listeners()
    heard: list[str] = []

    def listen(event: str, detail: Mapping[str, object]) -> None:
        heard.append(f"{event} {detail['params']}")

    listeners.add(listen)
    ledger = Ledger(listeners)
    for _ in range(3):
        ledger.pin(ONE, "captured")
        ledger.note_untuned(ONE)
        ledger.reject(ONE, "kernel", "gone")
    ledger.note_untuned(OTHER)
    assert heard == ["pinned one", "untuned one", "rejected one", "untuned other"]
    totals = ledger.counters.totals()
    assert (totals["pinned"], totals["untuned"], totals["rejected"]) == (1, 2, 1)
    assert ledger.untuned() == [ONE, OTHER]
    assert ledger.pinned(ONE) == "captured"
    assert ledger.pinned(OTHER) is None


def test_a_rejection_that_healed_counts_again_when_it_returns() -> None:
    ledger = Ledger(Listeners())
    ledger.reject(ONE, "kernel", "gone")
    ledger.rejections.heal(ONE, "kernel", winner="better")
    assert ledger.rejections.listed()[0].healed == "better"
    ledger.reject(ONE, "kernel", "gone again")
    assert ledger.counters.totals()["rejected"] == 2


def test_forgetting_lets_a_signature_be_measured_and_its_kernels_tried_again() -> None:
    ledger = Ledger(Listeners())
    ledger.give_up(ONE, "no memory")
    ledger.rejections.fail(ONE, "kernel")
    ledger.rejections.fail(ONE, "other")
    ledger.forget(ONE, "kernel")
    assert ledger.not_measurable(ONE) is None
    assert ledger.rejections.failed(ONE) == {"other"}
    ledger.forget(ONE)
    assert ledger.rejections.failed(ONE) == frozenset()


def test_reports_are_bounded_and_the_newest_stay() -> None:
    ledger = Ledger(Listeners())
    for number in range(MOST_REPORTS + 3):
        report = SelectionReport.not_measured("kernel", str(number))
        ledger.keep_evidence(Signature("op", str(number)), Evidence(report))
    assert ledger.evidence(Signature("op", "0")) is None
    assert ledger.evidence(Signature("op", str(MOST_REPORTS + 2))) is not None
    assert ledger.counters.totals()["measured"] == MOST_REPORTS + 3


def test_of_what_is_not_measured_the_newest_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "MOST_UNMEASURABLE", 2)
    ledger = Ledger(Listeners())
    signatures = [Signature("op", str(number)) for number in range(4)]
    for each in signatures:
        ledger.give_up(each, "spent")
    assert [ledger.not_measurable(each) for each in signatures] == [None, None, "spent", "spent"]


def test_measurements_that_broke_off_are_counted_until_one_ends_or_a_person_lets_it_be_tried_again() -> None:
    ledger = Ledger(Listeners())
    counts = [ledger.break_off(ONE), ledger.break_off(ONE), ledger.break_off(OTHER)]
    ledger.forget(ONE)
    counts.append(ledger.break_off(ONE))
    ledger.keep_evidence(ONE, Evidence(SelectionReport.not_measured("kernel", "why")))
    counts.append(ledger.break_off(ONE))
    ledger.try_again()
    counts.append(ledger.break_off(ONE))
    assert counts == [1, 2, 1, 1, 1, 1]


def test_failures_are_counted_by_their_class() -> None:
    ledger = Ledger(Listeners())
    errors = [ValueError("one"), ValueError("other"), MemoryError("one")]
    assert [ledger.count_failure(error) for error in errors] == [1, 2, 1]
