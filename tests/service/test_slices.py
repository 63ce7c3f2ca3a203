"""Work in parts gives what work at once would."""

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.slices import in_slices, paced, sorted_in_slices


@given(st.lists(st.integers(0, 50)), st.integers(1, 7))
def test_slices_are_all_of_it_in_order(items: list[int], size: int) -> None:
    parts = list(in_slices(items, size))
    assert [each for part in parts for each in part] == items
    assert all(len(part) == size for part in parts[:-1])
    assert list(paced(items)) == items


def test_much_is_sorted_as_little_is() -> None:
    items = [(number * 7919) % 10_007 for number in range(10_000)]
    assert sorted_in_slices(items, key=lambda each: -each) == sorted(items, reverse=True)
    assert sorted_in_slices([], key=int) == []
    pairs = [(number % 3, number) for number in range(5000)]
    assert sorted_in_slices(pairs, key=lambda pair: pair[0]) == sorted(pairs, key=lambda pair: pair[0])
