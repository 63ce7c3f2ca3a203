import random

from tensorplay.measure.budget import Budget, Deadline
from tensorplay.measure.confirmation import RESERVED_SAMPLES
from tensorplay.measure.race import leader, race
from tensorplay.measure.sampler import Sampler
from tensorplay.testing.manual_clock import ManualClock
from tensorplay.testing.scripted_timer import ScriptedTimer, drift, steady, step


def raced(timer: ScriptedTimer[str], *, budget: Budget | None = None, deadline: Deadline | None = None) -> Sampler[str]:
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
    race(sampler)
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
