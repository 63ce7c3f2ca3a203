"""Where ranks disagree, whatever the order that they are asked in."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.disagreement import Disagreements, Winner, winner_of
from tensorplay.service.identity import shape_id

OP = "GemmTunableOp_Float32"
SHAPES = st.sampled_from(["taN_m1_n2_k3_bias0", "taT_m1_n2_k3_bias0", "taN_m9_n2_k3_bias1"])
KERNELS = st.sampled_from(["Default", "a", "b"])
TIMES = st.floats(0.0, 10.0)
# One winner of each rank for each shape, on the device of that rank.
JOBS = st.dictionaries(st.tuples(st.integers(0, 4), SHAPES), st.tuples(KERNELS, TIMES), max_size=12)
Job = dict[tuple[int, str], tuple[str, float]]


def compared(job: Job, *, backwards: bool = False) -> Disagreements:
    found = Disagreements()
    for (rank, shape), (kernel, time) in sorted(job.items(), reverse=backwards):
        found.add(rank, Winner(OP, f"{shape}_dev{rank}", kernel, time))
    return found


@given(JOBS)
def test_a_shape_is_listed_just_when_its_winners_are_not_one_kernel(job: Job) -> None:
    listed = {each.params: each for each in compared(job).taken()}
    for shape in {shape for _, shape in job}:
        winners = {rank: told for (rank, each), told in job.items() if each == shape}
        assert (shape in listed) == (len({kernel for kernel, _ in winners.values()}) > 1)
        if shape in listed:
            found = listed[shape]
            assert {each.local_rank: (each.kernel, each.time_ms) for each in found.winners} == winners
            assert [each.local_rank for each in found.winners] == sorted(winners)
            assert {shape_id(OP, each.params) for each in found.winners} == {found.shape_id}


@given(JOBS)
def test_the_order_of_the_ranks_makes_no_difference(job: Job) -> None:
    assert list(compared(job).taken()) == list(compared(job, backwards=True).taken())


@given(JOBS)
def test_the_greatest_difference_in_time_comes_first(job: Job) -> None:
    spreads = [each.spread or 0.0 for each in compared(job).taken()]
    assert all(one >= other for one, other in pairwise(spreads))
    assert all(spread == 0.0 or spread >= 1.0 for spread in spreads)


@pytest.mark.parametrize(
    "told",
    [
        ("o", "\ud800", "k", 1.0),
        (["o"], "p", "k", 1.0),
        ("o", "p", None, 1.0),
        ("o", "p", "k", float("nan")),
        ("o", "p", "k", float("inf")),
        ("o", "p", "k", -1.0),
        ("o", "p", "k", "1"),
        ("o", "p", "k", True),
    ],
)
def test_what_can_be_no_winner_is_none(told: tuple[object, object, object, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        winner_of(*told)


def test_a_spread_that_is_no_number_is_not_told() -> None:
    found = Disagreements()
    for kernel, time in (("a", 1e308), ("b", 1e-308)):
        found.add(0, winner_of(OP, "taN_m1_n2_k3_bias0_dev0", kernel, time))
    assert [each.spread for each in found.taken()] == [None]


def test_of_very_many_shapes_each_is_found_and_none_is_kept() -> None:
    found = Disagreements()
    for rank in range(2):
        for m in range(1, 5001):
            kernel = "b" if rank and m % 2 else "a"
            found.add(rank, Winner(OP, f"taN_m{m}_n2_k3_bias0_dev{rank}", kernel, 1.0 + rank * m))
    listed = found.taken()
    assert len(listed) == 2500
    assert [each.spread for each in listed[:2]] == [5000.0, 4998.0]
    assert listed[0] == listed[:1][0]
    assert listed[-1].spread == 2.0
    assert len(found.taken()) == 0
