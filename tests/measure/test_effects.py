import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.measure.effects import MOST_EFFECTS, Effects
from tensorplay.measure.traits import traits_of

A, B = traits_of("k_tile1_cluster1"), traits_of("k_tile2_cluster1")


def test_what_was_never_tried_is_hoped_to_be_faster_the_more_of_it_is_new() -> None:
    effects = Effects()
    one, two = effects.expected(A, B), effects.expected(A, traits_of("k_tile2_cluster2"))
    assert two < one < 0.0
    assert effects.expected(A, A) == 0.0


def test_what_a_value_did_once_is_expected_where_it_comes_up_again() -> None:
    effects = Effects()
    effects.learn(A, B, 0.3)
    elsewhere = effects.expected(traits_of("k_tile1_cluster7"), traits_of("k_tile2_cluster7"))
    assert 0.2 < elsewhere < 0.3
    assert effects.expected(A, traits_of("k_tile3_cluster1")) < elsewhere


def test_observations_are_averaged_and_hope_fades() -> None:
    effects = Effects()
    for change in (0.1, 0.3, 0.1, 0.3) * 5:
        effects.learn(A, B, change)
    assert effects.expected(A, B) == pytest.approx(0.2, abs=0.06)


def test_the_way_back_is_the_opposite() -> None:
    effects = Effects()
    for _ in range(10):
        effects.learn(A, B, 0.2)
    assert effects.expected(B, A) < -0.15


def test_other_families_share_nothing_but_that_they_are_others() -> None:
    effects = Effects()
    effects.learn(A, B, 0.5)
    foreign = traits_of("other_tile2_cluster1")
    assert effects.expected(traits_of("other_tile1_cluster1"), foreign) < 0.0
    effects.learn(A, foreign, 0.4)
    assert effects.expected(B, traits_of("other_tile9_cluster9")) > 0.2


def test_a_hopeless_one_counts_as_twice_as_slow() -> None:
    effects = Effects()
    effects.learn(A, B, 5.0)
    assert effects.expected(A, B) < 0.7


def test_for_the_next_product_it_is_trusted_half() -> None:
    effects = Effects()
    for _ in range(10):
        effects.learn(A, B, 0.4)
    before = effects.expected(A, B)
    effects.fade()
    assert effects.expected(A, B) < before / 2 + 0.01


def test_the_same_candidate_teaches_nothing() -> None:
    effects = Effects()
    effects.learn(A, A, 0.4)
    assert len(effects) == 0


def test_what_is_remembered_is_bounded() -> None:
    effects = Effects()
    for tile in range(MOST_EFFECTS + 100):
        effects.learn(A, traits_of(f"k_tile{tile + 2}_cluster1"), 0.1)
    assert len(effects) == MOST_EFFECTS


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.floats(-50, 50)), max_size=60))
def test_whatever_is_learnt_an_expectation_is_a_number_of_bounded_size(steps: list[tuple[int, int, float]]) -> None:
    effects = Effects()
    for tile, cluster, change in steps:
        effects.learn(A, traits_of(f"k_tile{tile}_cluster{cluster}"), change)
    for tile in range(1, 6):
        assert abs(effects.expected(A, traits_of(f"k_tile{tile}_cluster3"))) < 5.0
