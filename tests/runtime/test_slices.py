"""Work in parts gives what work at once would."""

import gc

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.runtime.slices import emptied, in_slices, paced, sorted_in_slices


@given(st.lists(st.integers(0, 50)), st.integers(1, 7))
def test_slices_are_all_of_it_in_order(items: list[int], size: int) -> None:
    parts = list(in_slices(items, size))
    assert [each for part in parts for each in part] == items
    assert all(len(part) == size for part in parts[:-1])
    assert list(paced(items, size)) == items


@given(st.dictionaries(st.integers(), st.integers()), st.integers(1, 7))
def test_what_is_emptied_gives_all_of_it_and_keeps_nothing(items: dict[int, int], size: int) -> None:
    left = dict(items)
    parts = []
    for part in emptied(left, size):
        parts.append(part)
        assert len(left) == len(items) - sum(map(len, parts))
    assert [each for part in parts for each in part] == list(items.values())[::-1]
    assert all(len(part) == size for part in parts[:-1])


def test_the_garbage_collector_looks_at_each_part_unless_it_is_off() -> None:
    looked: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        looked.extend([info["generation"]] * (phase == "start"))

    before = gc.get_threshold()
    gc.callbacks.append(note)
    try:
        gc.disable()
        assert len(list(in_slices(range(5), 1))) == 5
        assert looked == []
        gc.enable()
        gc.set_threshold(0)
        assert len(list(in_slices(range(5), 1))) == 5
        assert looked == []
        gc.set_threshold(*before)
        assert len(list(in_slices(range(5), 1))) == 5
        assert looked.count(0) >= 4
    finally:
        gc.enable()
        gc.set_threshold(*before)
        gc.callbacks.remove(note)


def test_much_is_sorted_as_little_is() -> None:
    items = [(number * 7919) % 10_007 for number in range(10_000)]
    assert sorted_in_slices(items, key=lambda each: -each) == sorted(items, reverse=True)
    assert sorted_in_slices([], key=int) == []
    pairs = [(number % 3, number) for number in range(5000)]
    assert sorted_in_slices(pairs, key=lambda pair: pair[0]) == sorted(pairs, key=lambda pair: pair[0])
