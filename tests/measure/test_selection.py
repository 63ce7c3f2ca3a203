import json
import random
from collections.abc import Mapping, Sequence

import pytest

from tensorplay.errors import MeasurementError
from tensorplay.measure import Budget, Deadline, Selection, Verdict, choose
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import (
    Script,
    ScriptedTimer,
    drift,
    fast_at_first,
    heavy_tailed,
    steady,
    step,
    with_outliers,
)

Scripts = Mapping[str, Script | float | Sequence[float]]


def chosen(
    timer: ScriptedTimer[str], *, budget: Budget | None = None, deadline: Deadline | None = None, min_gain: float = 0.02
) -> Selection[str]:
    return choose(
        list(timer.launches),
        timer,
        budget=budget or Budget(),
        describe=lambda candidate: f"kernel {candidate}",
        min_gain=min_gain,
        deadline=deadline,
    )


def dropped(selection: Selection[str]) -> dict[str, str | None]:
    return {report.kernel: report.dropped for report in selection.report.candidates}


def test_a_faster_candidate_wins_with_its_evidence() -> None:
    selection = chosen(ScriptedTimer({"first": 1.05, "slow": 1.2, "fast": 1.0, "same": 1.05}))
    report = selection.report
    assert (selection.winner, selection.winner_ms, selection.verdict) == ("fast", 1.0, Verdict.WINNER)
    assert (report.winner, report.winner_ms, report.first_choice_ms) == ("kernel fast", 1.0, 1.05)
    assert report.confirmation is not None
    assert report.confirmation.gain == pytest.approx(0.05)
    assert dropped(selection) == {
        "kernel first": "confirmation: the winner gains +5.0% (+5.0% to +5.0%)",
        "kernel slow": "race: took 20.0% longer than kernel fast",
        "kernel fast": None,
        "kernel same": "race: took 5.0% longer than kernel fast",
    }


def test_the_samples_of_the_confirmation_are_kept_as_a_histogram() -> None:
    won = chosen(ScriptedTimer({"first": steady(1.0), "fast": steady(0.5)})).report
    assert won.confirmation is not None and won.histogram is not None
    for side in (won.histogram.first_choice, won.histogram.winner):
        assert sum(side.counts) + side.below + side.above == won.confirmation.pairs
    assert 0.4 < won.histogram.low_ms < 0.6 and 0.9 < won.histogram.high_ms < 1.1
    alone = chosen(ScriptedTimer({"first": steady(1.0)})).report
    assert alone.confirmation is None and alone.histogram is None


def test_nothing_faster_leaves_the_first_choice_with_its_own_time() -> None:
    selection = chosen(ScriptedTimer({"first": 1.0, "slow": 1.1, "slower": 9.0}))
    assert (selection.winner, selection.winner_ms, selection.verdict) == ("first", 1.0, Verdict.FIRST_CHOICE)
    assert selection.report.confirmation is None
    assert dropped(selection) == {
        "kernel first": None,
        "kernel slow": "race: took 10.0% longer than kernel first",
        "kernel slower": "screening: took 9.00 times the fastest of its look",
    }


def test_a_gain_below_the_margin_leaves_the_first_choice() -> None:
    selection = chosen(ScriptedTimer({"first": 1.01, "same": 1.0}))
    assert (selection.winner, selection.verdict) == ("first", Verdict.WITHIN_NOISE)
    assert selection.winner_ms == selection.report.first_choice_ms == 1.01
    assert dropped(selection)["kernel same"] == "not confirmed: within noise, the gain is +1.0% (+1.0% to +1.0%)"


def test_a_first_choice_alone_is_timed_and_kept() -> None:
    timer = ScriptedTimer({"first": 2.0})
    selection = chosen(timer)
    assert (selection.winner, selection.winner_ms, selection.verdict) == ("first", 2.0, Verdict.ALONE)
    assert selection.report.candidates[0].samples == 5


def test_a_first_choice_whose_rivals_cannot_run_is_alone() -> None:
    timer = ScriptedTimer({"first": 1.0, "bad": 0.5, "worse": 0.5}, fails_at={"bad": 1, "worse": 7})
    selection = chosen(timer)
    assert (selection.winner, selection.verdict) == ("first", Verdict.ALONE)
    assert dropped(selection)["kernel bad"] == "cannot run: launch 1 of bad fails by script"


def test_a_leader_that_breaks_in_the_confirmation_makes_room_for_the_next() -> None:
    # Neither is clearly ahead of the other in the 39 rounds that there are.
    scripts: Scripts = {"first": 1.0, "broken": [0.79, 0.83] * 50, "fast": 0.815}
    timer = ScriptedTimer(scripts, fails_at={"broken": 45})
    selection = chosen(timer, budget=Budget(0, 100))
    assert (selection.winner, selection.verdict) == ("fast", Verdict.WINNER)
    reason = dropped(selection)["kernel broken"]
    assert reason is not None
    assert reason.startswith("cannot run: launch 4")
    assert selection.report.confirmation is not None
    assert selection.report.confirmation.winner_ms == 0.815


def test_a_first_choice_that_cannot_run_is_an_error() -> None:
    with pytest.raises(MeasurementError, match="first choice kernel first"):
        chosen(ScriptedTimer({"first": 1.0, "fast": 0.5}, fails_at={"first": 1}))


@pytest.mark.parametrize("min_gain", [-0.01, float("nan"), float("inf")])
def test_a_margin_that_is_no_share_is_an_error(min_gain: float) -> None:
    with pytest.raises(ValueError, match="min_gain"):
        chosen(ScriptedTimer({"first": 1.0}), min_gain=min_gain)


def test_no_candidates_are_an_error() -> None:
    with pytest.raises(ValueError, match="no candidates"):
        chosen(ScriptedTimer({}))


def test_candidates_need_no_more_than_identity() -> None:
    class Opaque:
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            raise AssertionError("candidates must not be compared")

    first, fast = Opaque(), Opaque()

    class Timer:
        def warm_up(self, candidate: Opaque) -> None:
            return

        def screen(self, candidate: Opaque, launches: int) -> float:
            return 2.0 if candidate is first else 1.0

        def sample(self, order: Sequence[Opaque]) -> list[float]:
            return [self.screen(candidate, 1) for candidate in order]

        def sample_launches(self, candidate: Opaque) -> int:
            return 1

    assert choose([first, fast], Timer(), budget=Budget(), describe=lambda _: "a kernel").winner is fast


@pytest.mark.parametrize("budget", [Budget(1, 1), Budget(0, 1), Budget(0, 5), Budget(30, 100)])
def test_a_budget_too_small_to_confirm_keeps_the_first_choice_and_says_so(budget: Budget) -> None:
    timer = ScriptedTimer({"first": 10.0, "fast": 1.0})
    selection = chosen(timer, budget=budget)
    assert (selection.winner, selection.verdict) == ("first", Verdict.INSUFFICIENT_BUDGET)
    assert dropped(selection)["kernel fast"] == (
        "not confirmed: insufficient budget, max_tuning_duration_ms or max_tuning_samples holds fewer than "
        "5 pairs with the first choice"
    )


def test_a_deadline_that_leaves_candidates_out_says_so() -> None:
    clock = ManualClock()
    timer = ScriptedTimer({"first": 100.0, "slow": 120.0, "fast": 50.0}, clock=clock)
    selection = chosen(timer, deadline=Deadline(clock, 0.5))
    assert (selection.winner, selection.verdict) == ("first", Verdict.INSUFFICIENT_BUDGET)
    assert dropped(selection)["kernel fast"] == "not measured: the tuning time ran out"


def test_equal_seeds_choose_equally() -> None:
    def run(seed: int) -> dict[str, object]:
        timer = ScriptedTimer({name: steady(1.0, 0.05) for name in "abcdef"}, seed=1)
        generator = random.Random(seed)  # noqa: S311 - repeatable order, not a secret
        return choose("abcdef", timer, budget=Budget(), describe=str, rng=generator).report.to_dict()

    assert run(1) == run(1) != run(2)


def test_a_report_is_plain_json() -> None:
    report = chosen(ScriptedTimer({"first": 1.05, "broken": 1.0, "fast": 1.0}, fails_at={"broken": 1})).report.to_dict()
    assert json.loads(json.dumps(report, allow_nan=False)) == report


GOOD: Scripts = {"first": steady(1.0, 0.01), "same": steady(1.0, 0.01), "good": steady(0.95, 0.01)}
EQUAL: Scripts = {name: steady(1.0, 0.01) for name in ("first", "b", "c", "d")}
ENVIRONMENTS = {
    "calm": None,
    "drift up": drift(0.5),
    "drift down": drift(-0.5),
    "step up": step(60.0, 1.3),
    "step down": step(60.0, 0.7),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_real_gain_is_found_in_drift_and_steps(environment: str) -> None:
    for seed in range(20):
        timer = ScriptedTimer(GOOD, environment=ENVIRONMENTS[environment], seed=seed)
        assert chosen(timer).winner == "good"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_equal_candidates_keep_the_first_choice_in_drift_and_steps(environment: str) -> None:
    for seed in range(20):
        timer = ScriptedTimer(EQUAL, environment=ENVIRONMENTS[environment], seed=seed)
        assert chosen(timer).winner == "first"


def test_a_candidate_fast_in_its_first_sample_only_never_wins_and_hides_nobody() -> None:
    flatterer = fast_at_first(steady(1.1, 0.01), factor=0.1)
    for seed in range(20):
        timer = ScriptedTimer(
            {"first": steady(1.0, 0.01), "flatterer": flatterer, "good": steady(0.9, 0.01)}, seed=seed
        )
        assert chosen(timer).winner == "good"
        timer = ScriptedTimer({"first": steady(1.0, 0.01), "flatterer": flatterer}, seed=seed)
        assert chosen(timer).winner == "first"


def test_a_gain_is_found_behind_outliers() -> None:
    scripts = {name: with_outliers(script, share=0.03, factor=5.0) for name, script in GOOD.items() if callable(script)}
    wins = sum(chosen(ScriptedTimer(scripts, seed=seed), budget=Budget(0, 100)).winner == "good" for seed in range(40))
    assert wins >= 38


def test_heavy_tails_are_called_unstable_and_keep_the_first_choice() -> None:
    verdicts = []
    for seed in range(40):
        timer = ScriptedTimer({name: heavy_tailed(0.01, 1.2) for name in "abcd"}, seed=seed)
        selection = chosen(timer)
        assert selection.winner == "a"
        verdicts.append(selection.verdict)
    assert verdicts.count(Verdict.UNSTABLE) >= 20


def test_a_candidate_that_is_often_slow_does_not_replace_the_first_choice() -> None:
    # Its median is 10 % faster, its mean 60 % slower.
    scripts: Scripts = {"first": steady(0.01, 0.01), "fickle": with_outliers(steady(0.009), share=0.4, factor=3.0)}
    assert all(chosen(ScriptedTimer(scripts, seed=seed)).winner == "first" for seed in range(40))


def test_a_near_tie_that_loses_the_confirmation_says_to_whom() -> None:
    selection = chosen(ScriptedTimer({"first": 1.1, "near": 1.01, "fast": 1.0}))
    assert selection.winner == "fast"
    assert dropped(selection)["kernel near"] == "confirmation: gained less than kernel fast"


def test_a_near_tie_of_a_leader_that_is_not_confirmed_says_so() -> None:
    scripts: Scripts = {name: steady(1.0, 0.05) for name in ("first", "b", "c", "d")}
    reasons = [
        dropped(selection)
        for seed in range(20)
        if (selection := chosen(ScriptedTimer(scripts, seed=seed), budget=Budget(0, 40))).report.confirmation
    ]
    assert any("race: a near tie of" in str(reason) for each in reasons for reason in each.values())
    assert all(sum(reason is None for reason in each.values()) == 1 for each in reasons)
