"""What came last stays."""

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.runtime.newest import keep_newest


@given(st.lists(st.integers(0, 9)), st.integers(0, 5))
def test_the_newest_stay_in_their_order(keys: list[int], most: int) -> None:
    entries: OrderedDict[int, None] = OrderedDict()
    for key in keys:
        entries[key] = None
        entries.move_to_end(key)
        keep_newest(entries, most)
    unique = list(dict.fromkeys(reversed(keys)))[:most]
    assert list(entries) == unique[::-1]


def test_entries_that_vanish_while_they_are_counted_are_no_error() -> None:
    class Vanishing(OrderedDict[int, None]):
        def __len__(self) -> int:
            count = super().__len__()
            self.clear()
            return count

    keep_newest(Vanishing({1: None, 2: None}), 1)
