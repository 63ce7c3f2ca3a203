"""The drawn histogram: bars within the picture, as high as their counts say."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.measure.histogram import histogram_of
from tensorplay.service.pages.histogram_view import LEAST, TALLEST, histogram_view

TIMES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60)


@given(TIMES, TIMES)
def test_every_bar_is_in_the_picture_and_as_high_as_its_count(first: list[float], winner: list[float]) -> None:
    made = histogram_of(first, winner)
    view = histogram_view(made.to_dict())
    assert view is not None
    assert [(each.first_choice, each.winner) for each in view.bins] == list(
        zip(made.first_choice.counts, made.winner.counts, strict=True)
    )
    far = [count for each in (made.first_choice, made.winner) for count in (each.below, each.above)]
    tallest = max(*made.first_choice.counts, *made.winner.counts, *far)
    for each in (*view.bins, *view.beyond):
        assert 0 <= each.x < each.x + each.width <= 100
        for count, height in ((each.first_choice, each.first_choice_height), (each.winner, each.winner_height)):
            assert 0 <= height <= TALLEST
            assert (height == TALLEST) == (count == tallest)
            assert (height >= LEAST) == (count > 0) == (height > 0)
    drawn = sorted((each.x, each.x + each.width) for each in (*view.bins, *view.beyond))
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(drawn)), "no bar hides another"
    assert all(0 <= tick.x <= 100 for tick in view.axis.ticks) and len(view.axis.ticks) <= 6
    assert sum(each.first_choice for each in view.beyond) == len(first) - sum(made.first_choice.counts)
    assert sum(each.winner for each in view.beyond) == len(winner) - sum(made.winner.counts)


def test_nothing_is_drawn_of_nothing() -> None:
    assert histogram_view(None) is None
    empty = {"counts": [0, 0], "below": 0, "above": 1}
    view = histogram_view({"low_ms": 1.0, "high_ms": 1.0, "first_choice": empty, "winner": empty})
    assert view is not None
    assert [(each.is_far, each.from_ms, each.to_ms, each.winner) for each in view.beyond] == [(True, 1.0, None, 1)]
    assert {each.winner_height for each in view.bins} == {0.0}
