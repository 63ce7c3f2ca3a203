"""The decision table: each row, and what holds for every combination of facts."""

from dataclasses import replace
from itertools import product

import pytest

from tensorplay.runtime.resolution import Action, Decision, EntryState, Facts, Reason, decide

ALL_FACTS = [
    Facts(enabled=enabled, entry=entry, capturing=capturing, tuning=tuning, background=background, pinned=pinned)
    for enabled, entry, capturing, tuning, background, pinned in product(
        (False, True), EntryState, (False, True), (False, True), (False, True), (False, True)
    )
]
NONE, WINNER, DEFAULT, STALE = EntryState.NONE, EntryState.WINNER, EntryState.DEFAULT, EntryState.STALE


def row(enabled: bool, entry: EntryState, capturing: bool, tuning: bool, background: bool = False) -> Decision:
    return decide(Facts(enabled=enabled, entry=entry, capturing=capturing, tuning=tuning, background=background))


@pytest.mark.parametrize("entry", EntryState)
@pytest.mark.parametrize("tuning", [False, True])
class TestWithTheFeatureOff:
    def test_the_library_s_candidates_are_selected_in_process(self, entry: EntryState, tuning: bool) -> None:
        decision = row(False, entry, False, tuning)
        assert decision.action is Action.SELECT_IN_PROCESS
        assert decision.reason is Reason.SELECTED_IN_PROCESS
        assert not (decision.pin or decision.untuned or decision.reject)

    def test_a_capture_runs_the_first_choice_and_selects_nothing(self, entry: EntryState, tuning: bool) -> None:
        decision = row(False, entry, True, tuning)
        assert decision == Decision(action=Action.FIRST_CHOICE, reason=Reason.FIRST_CHOICE)


@pytest.mark.parametrize("capturing", [False, True])
@pytest.mark.parametrize("tuning", [False, True])
class TestARecordedEntry:
    def test_that_rebuilds_is_replayed_whatever_else_is_on(self, capturing: bool, tuning: bool) -> None:
        decision = row(True, WINNER, capturing, tuning)
        assert decision == Decision(action=Action.WINNER, reason=Reason.REPLAYED, settled=True)

    def test_of_default_runs_the_first_choice_and_counts_as_replay(self, capturing: bool, tuning: bool) -> None:
        decision = row(True, DEFAULT, capturing, tuning)
        assert decision == Decision(action=Action.FIRST_CHOICE, reason=Reason.REPLAYED, settled=True)


def test_a_stale_entry_is_measured_again_when_tuning_is_on() -> None:
    assert row(True, STALE, False, True) == Decision(action=Action.MEASURE, reason=Reason.MEASURED, reject=True)


def test_a_stale_entry_is_healed_later_when_tuning_is_off() -> None:
    decision = row(True, STALE, False, False)
    assert decision == Decision(
        action=Action.FIRST_CHOICE, reason=Reason.FIRST_CHOICE, reject=True, until_captured=True
    )
    assert not decision.settled


@pytest.mark.parametrize("tuning", [False, True])
def test_a_stale_entry_under_capture_pins_the_first_choice(tuning: bool) -> None:
    decision = row(True, STALE, True, tuning)
    assert decision.action is Action.FIRST_CHOICE
    assert decision.pin
    assert decision.reject
    assert not decision.untuned


def test_a_miss_is_measured_when_tuning_is_on() -> None:
    assert row(True, NONE, False, True) == Decision(action=Action.MEASURE, reason=Reason.MEASURED)


def test_a_miss_runs_the_first_choice_and_stays_tunable_when_tuning_is_off() -> None:
    decision = row(True, NONE, False, False)
    assert decision == Decision(
        action=Action.FIRST_CHOICE, reason=Reason.FIRST_CHOICE, untuned=True, until_captured=True
    )


def test_a_miss_in_the_background_runs_the_first_choice_and_is_queued() -> None:
    assert row(True, NONE, False, True, background=True) == Decision(
        action=Action.FIRST_CHOICE, reason=Reason.FIRST_CHOICE, queue=True, until_captured=True
    )


def test_a_stale_entry_in_the_background_is_rejected_and_queued() -> None:
    assert row(True, STALE, False, True, background=True) == Decision(
        action=Action.FIRST_CHOICE, reason=Reason.FIRST_CHOICE, reject=True, queue=True, until_captured=True
    )


@pytest.mark.parametrize("tuning", [False, True])
def test_a_miss_under_capture_pins_the_first_choice(tuning: bool) -> None:
    decision = row(True, NONE, True, tuning)
    assert decision.action is Action.FIRST_CHOICE
    assert decision.pin
    assert decision.untuned


@pytest.mark.parametrize("facts", ALL_FACTS)
def test_nothing_is_measured_or_selected_under_capture(facts: Facts) -> None:
    if facts.capturing:
        assert decide(facts).action in {Action.WINNER, Action.FIRST_CHOICE}


@pytest.mark.parametrize("facts", ALL_FACTS)
def test_nothing_is_measured_with_tuning_or_the_feature_off(facts: Facts) -> None:
    if not (facts.tuning and facts.enabled):
        assert decide(facts).action is not Action.MEASURE


@pytest.mark.parametrize("facts", ALL_FACTS)
def test_only_what_would_be_measured_is_queued(facts: Facts) -> None:
    decision, blocking = decide(facts), decide(replace(facts, background=False))
    assert decision.queue is (facts.background and blocking.action is Action.MEASURE)
    if decision.queue:
        assert decision.action is Action.FIRST_CHOICE
        assert not decision.untuned
    else:
        assert decision == blocking


@pytest.mark.parametrize("facts", ALL_FACTS)
def test_what_holds_until_a_capture_is_not_decided_under_one(facts: Facts) -> None:
    decision = decide(facts)
    assert not (decision.until_captured and (facts.capturing or decision.settled))
    if decision.until_captured:
        assert decision.action is Action.FIRST_CHOICE


@pytest.mark.parametrize("facts", [facts for facts in ALL_FACTS if facts.pinned])
def test_a_pin_outlives_every_other_fact(facts: Facts) -> None:
    assert decide(facts) == Decision(action=Action.FIRST_CHOICE, reason=Reason.FIRST_CHOICE, settled=True)


@pytest.mark.parametrize("facts", ALL_FACTS)
def test_only_a_winner_that_rebuilds_is_run_as_a_winner(facts: Facts) -> None:
    if decide(facts).action is Action.WINNER:
        assert facts.entry is WINNER
        assert facts.enabled
