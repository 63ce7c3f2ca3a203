import random

from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.confirmation import RESERVED_SAMPLES
from tensorplay.measure.race import FINALISTS, NEAR_TIE, finalists, leader, race
from tensorplay.measure.sampler import Sampler
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import ScriptedTimer, drift, steady, step, wandering


def raced(
    timer: ScriptedTimer[str],
    *,
    budget: Budget | None = None,
    deadline: Deadline | None = None,
    min_gain: float = 0.0,
) -> Sampler[str]:
    sampler = Sampler(
        list(timer.launches),
        timer,
        describe=str,
        budget=budget or Budget(),
        reserved_samples=RESERVED_SAMPLES,
        deadline=deadline or Deadline(ManualClock()),
        rng=random.Random(0),  # noqa: S311 - repeatable order, not a secret
    )
    for record in sampler.records:
        sampler.read(record, 1)
    race(sampler, min_gain=min_gain)
    return sampler


def test_the_slower_are_dropped_and_the_race_ends_when_one_challenger_leads() -> None:
    timer = ScriptedTimer({"first": 1.0, "slow": 1.1, "fast": 0.9, "same": 1.0})
    sampler = raced(timer)
    assert leader(sampler).kernel == "fast"
    assert [record.kernel for record in sampler.survivors] == ["first", "fast"]
    assert sampler.records[1].dropped == "race: took 22.2% longer than fast"
    assert max(sampler.first.rounds) + 1 == 5


def test_it_ends_when_the_first_choice_stands_alone() -> None:
    sampler = raced(ScriptedTimer({"first": 1.0, "slow": 1.1, "slower": 1.2}))
    assert sampler.survivors == [sampler.first]
    assert leader(sampler) is sampler.first


def test_a_single_challenger_that_looks_faster_is_not_raced() -> None:
    timer = ScriptedTimer({"first": 1.0, "fast": 0.9})
    assert leader(raced(timer)).kernel == "fast"
    assert timer.samples_of("first") == 1


def test_equal_candidates_are_raced_until_the_confirmation_needs_the_rest() -> None:
    timer = ScriptedTimer(dict.fromkeys("abc", 0.01))
    sampler = raced(timer)
    assert len(sampler.survivors) == 3
    assert [timer.samples_of(name) for name in "abc"] == [40] * 3


def test_between_equals_the_earlier_one_leads() -> None:
    assert leader(raced(ScriptedTimer(dict.fromkeys("abc", 0.01)))).kernel == "a"


def test_drift_and_steps_that_hit_everybody_drop_nobody_wrongly() -> None:
    for environment in (drift(0.5), step(40.0, 1.4)):
        for seed in range(20):
            scripts = {"first": steady(1.0, 0.01), "good": steady(0.95, 0.01), "same": steady(1.0, 0.01)}
            assert leader(raced(ScriptedTimer(scripts, environment=environment, seed=seed))).kernel == "good"


def test_a_candidate_whose_share_is_spent_sits_out_and_keeps_its_place() -> None:
    # It takes longer now and then, so that its 12 ms are over long before the others'.
    stalls = [0.9, *[0.9, 0.9, 0.9, 6.0] * 20]
    sampler = raced(ScriptedTimer({"first": 1.0, "stalling": stalls, "same": 1.0}))
    assert len(sampler.records[1].rounds) < len(sampler.first.rounds)
    assert leader(sampler).kernel == "stalling"


def test_it_ends_with_the_deadline() -> None:
    clock = ManualClock()
    timer = ScriptedTimer(dict.fromkeys("abc", 1.0), clock=clock)
    raced(timer, budget=Budget(0, 0), deadline=Deadline(clock, 0.04))
    assert 0.030 <= clock() <= 0.031


def test_it_ends_without_any_limit() -> None:
    timer = ScriptedTimer(dict.fromkeys("abc", 1000.0))
    raced(timer, budget=Budget(0, 0))
    assert timer.samples_of("a") == 80


def test_a_challenger_that_breaks_ends_nothing() -> None:
    sampler = raced(ScriptedTimer({"first": 1.0, "broken": 0.5, "fast": 0.9}, fails_at={"broken": 3}))
    assert leader(sampler).kernel == "fast"
    assert sampler.records[1].is_broken


def test_near_ties_are_left_to_the_confirmation_at_most_three_and_best_first() -> None:
    close = {"b": 0.093, "c": 0.092, "d": 0.091, "e": 0.09}
    sampler = raced(ScriptedTimer({"first": 0.1, **close, "far": 0.097}))
    assert [record.kernel for record in finalists(sampler)] == ["e", "d", "c"]
    assert FINALISTS == 3
    # The fourth is settled by its bound alone, when there are rounds enough.
    assert sampler.records[1].dropped == "race: took 3.3% longer than e"
    assert max(sampler.first.rounds) + 1 == 14


def test_whoever_is_not_near_is_no_finalist() -> None:
    sampler = raced(ScriptedTimer({"first": 1.0, "far": 0.95, "fast": 0.9}))
    assert [record.kernel for record in finalists(sampler)] == ["fast"]
    assert NEAR_TIE < 0.95 / 0.9 - 1


def test_there_are_no_finalists_where_the_first_choice_leads() -> None:
    assert finalists(raced(ScriptedTimer({"first": 1.0, "near": 1.01}))) == []


def test_whoever_cannot_gain_the_margin_is_dropped_as_soon_as_that_is_sure() -> None:
    timer = ScriptedTimer({"first": 1.0, "close": 0.995, "same": 1.0, "closer": 0.985}, seed=1)
    sampler = raced(timer, min_gain=0.01)
    assert [record.kernel for record in sampler.survivors] == ["first", "closer"]
    assert sampler.records[1].dropped == "race: gains 0.5% over the first choice at most"
    assert max(sampler.first.rounds) + 1 == 5


def test_a_field_that_cannot_gain_the_margin_ends_the_race_at_once() -> None:
    timer = ScriptedTimer({name: steady(1.0, 0.001) for name in "abcdefgh"})
    sampler = raced(timer, min_gain=0.01)
    assert sampler.survivors == [sampler.first]
    assert timer.samples_of("a") == 6


def test_the_best_is_a_finalist_although_times_wander() -> None:
    """Five slow rounds in a row do not drop it: short of the margin of a near tie, only many rounds do."""
    missed = 0
    for seed in range(30):
        scripts = {f"k{place}": wandering(0.01 * (0.9 + 0.01 * place), 0.01, 0.9) for place in range(8)}
        sampler = raced(ScriptedTimer({"first": wandering(0.01, 0.01, 0.9), **scripts}, seed=seed))
        missed += "k0" not in [record.kernel for record in finalists(sampler)]
    assert missed <= 1
