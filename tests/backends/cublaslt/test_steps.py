"""Steps between configurations: which there are, in which order, and never one that is not allowed."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.capabilities import Capabilities
from tensorplay.backends.cublaslt.steps import OWN_SPLIT, first_steps, steps
from tensorplay.gemm import LtKernelId

NAMES = [field.name for field in fields(LtKernelId)]
SIZES = {1: (8, 8), 11: (32, 32), 15: (64, 64), 16: (128, 32), 18: (128, 64), 20: (128, 128), 23: (128, 256)}
MAY = Capabilities(
    tiles=(1, 11, 15, 16, 18, 20, 23),
    stages=(7, 8, 11, 35),
    splits=True,
    reductions=7,
    swizzles=True,
    custom_max=7,
)
AT = LtKernelId(66, 20, 35, 1, 0, 0, 3, 0, 2)
SPLIT = LtKernelId(55, 18, 11, 4, 2, 0, 0, 0, 0)

ids = st.builds(
    LtKernelId,
    id=st.just(66),
    tile=st.sampled_from([0, *SIZES]),
    stages=st.sampled_from([0, 7, 11, 35]),
    splitk=st.sampled_from([-1, 0, 1, 3, 32]),
    red=st.sampled_from([0, 1, 2, 4]),
    swizzle=st.sampled_from([0, 1]),
    custom=st.integers(0, 9),
    inner=st.integers(0, 4),
    cluster=st.integers(0, 51),
)
capabilities = st.builds(
    Capabilities,
    tiles=st.lists(st.sampled_from([*SIZES, 700]), unique=True).map(tuple),
    stages=st.lists(st.integers(0, 38), unique=True, max_size=6).map(tuple),
    splits=st.booleans(),
    reductions=st.integers(0, 7),
    swizzles=st.booleans(),
    custom_max=st.integers(0, 12),
)


def stepped(at: LtKernelId, may: Capabilities = MAY, reductions: tuple[int, ...] = (2, 1, 4)) -> list[LtKernelId]:
    return list(steps(at, may, reductions=reductions, tile_size=SIZES.get))


def changed(at: LtKernelId, other: LtKernelId) -> set[str]:
    return {name for name in NAMES if getattr(at, name) != getattr(other, name)}


@given(ids, capabilities, st.sampled_from([(), (2,), (2, 1, 4)]))
def test_every_step_changes_one_attribute_or_a_pair_that_belongs_together_once_each(
    at: LtKernelId, may: Capabilities, reductions: tuple[int, ...]
) -> None:
    pairs = ({"splitk", "red"}, {"tile", "stages"}, {"tile", "cluster"}, {"tile", "splitk", "red"}, {"tile", "splitk"})
    found = stepped(at, may, reductions)
    assert len(set(found)) == len(found)
    assert at not in found
    for step in found:
        names = changed(at, step)
        assert len(names) == 1 or names in pairs, step


@given(ids, capabilities, st.sampled_from([(), (2,), (2, 1, 4)]))
def test_no_step_leaves_what_the_algorithm_can_and_what_is_allowed(
    at: LtKernelId, may: Capabilities, reductions: tuple[int, ...]
) -> None:
    for step in stepped(at, may, reductions):
        names = changed(at, step)
        assert "tile" not in names or step.tile in may.tiles
        assert "stages" not in names or step.stages in may.stages
        assert "custom" not in names or step.custom <= may.custom_max
        assert "swizzle" not in names or may.swizzles
        assert step.cluster != 1 or at.cluster == 1, "1 is no cluster shape"
        if names & {"splitk", "red"} and step.splitk != 1:
            assert may.splits
            assert step.red in reductions
            assert step.red & may.reductions


def test_kinds_of_step_take_turns_so_that_the_first_few_are_of_many_kinds() -> None:
    first = stepped(AT)[:8]
    assert {"tile", "cluster", "custom", "swizzle", "stages"} <= set().union(*(changed(AT, step) for step in first))


def test_near_values_come_first() -> None:
    tiles = [step.tile for step in stepped(AT) if changed(AT, step) == {"tile"}]
    assert tiles[:2] == [18, 23]
    assert tiles[-1] == 1
    customs = [step.custom for step in stepped(AT) if changed(AT, step) == {"custom"}]
    assert customs[:2] == [2, 4]
    splits = [step.splitk for step in stepped(SPLIT) if changed(SPLIT, step) == {"splitk"}]
    assert splits[:2] == [5, 3]


def test_split_sums_have_every_scheme_and_number_and_their_own_choice() -> None:
    found = {(step.splitk, step.red) for step in stepped(SPLIT) if changed(SPLIT, step) <= {"splitk", "red"}}
    assert {(1, 0), (4, 1), (4, 4), (8, 2), (32, 2), (OWN_SPLIT, 2)} <= found


def test_a_smaller_tile_with_fewer_splits_makes_as_many_blocks() -> None:
    both = {(step.tile, step.splitk) for step in stepped(SPLIT) if changed(SPLIT, step) == {"tile", "splitk"}}
    # Half of the tile, half of the splits; twice of it, twice of them.
    assert {(15, 2), (20, 8)} <= both


def test_without_reductions_no_sum_is_split() -> None:
    assert {step.splitk for step in stepped(AT, MAY, ())} == {1}
    assert {step.red for step in stepped(AT, MAY, ())} == {0}


def test_an_algorithm_without_cluster_shapes_is_asked_for_few() -> None:
    plain = replace(AT, cluster=0)
    assert {step.cluster for step in stepped(plain)} == {0, 2, 3, 5}
    assert len({step.cluster for step in stepped(AT)}) == 51


def test_an_algorithm_without_inner_shapes_is_asked_for_none() -> None:
    assert {step.inner for step in stepped(AT)} == {0}
    assert {step.inner for step in stepped(replace(AT, inner=3))} == {1, 2, 3, 4}


@given(ids, capabilities)
def test_first_steps_to_another_algorithm_take_what_it_has_and_split_nothing(at: LtKernelId, may: Capabilities) -> None:
    found = list(first_steps(at, 21, may, tile_size=SIZES.get))
    assert 1 <= len(found) <= 2 * 3 * 3
    assert len(set(found)) == len(found)
    for step in found:
        assert (step.id, step.splitk, step.red, step.swizzle, step.custom) == (21, 1, 0, 0, 0)
        assert step.tile in (may.tiles or (0,))
        assert step.stages in (may.stages or (0,))


def test_the_nearest_tile_is_taken_to_another_algorithm() -> None:
    tiles = {step.tile for step in first_steps(AT, 21, replace(MAY, tiles=(1, 11, 18)), tile_size=SIZES.get)}
    assert tiles == {18, 11}
    assert {step.tile for step in first_steps(AT, 21, MAY, tile_size=SIZES.get)} == {20}


@pytest.mark.parametrize("custom_max", [0, 255, 2**31 - 1])
def test_a_vast_number_of_options_is_cut_off(custom_max: int) -> None:
    assert len(stepped(AT, replace(MAY, custom_max=custom_max))) < 1000
