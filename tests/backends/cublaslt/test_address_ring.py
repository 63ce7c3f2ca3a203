import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.address_ring import AddressRing

LISTS = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), max_size=60)


@given(LISTS, st.integers(12, 40))
def test_a_list_that_is_found_lies_there_unchanged_whatever_was_written_since(
    lists: list[tuple[int, int]], capacity: int
) -> None:
    ring, memory = AddressRing(capacity), [0] * capacity
    for length, number in lists:
        addresses = tuple(range(100 * number, 100 * number + length))
        found = ring.find(addresses)
        if found is None:
            found = ring.make_room(length)
            memory[found : found + length] = addresses
            ring.lay(addresses)
        assert tuple(memory[found : found + length]) == addresses
        for known in {tuple(range(100 * one, 100 * one + size)) for size, one in lists}:
            place = ring.find(known)
            assert place is None or tuple(memory[place : place + len(known)]) == known


@given(st.integers(1, 8), st.integers(8, 64))
def test_lists_of_one_length_are_kept_as_long_as_there_is_room(length: int, capacity: int) -> None:
    ring, room = AddressRing(capacity), capacity // length
    lists = [tuple(range(number * 10, number * 10 + length)) for number in range(3 * room)]
    for each in lists:
        ring.make_room(length)
        ring.lay(each)
    assert [each for each in lists if ring.find(each) is not None] == lists[-room:]


@pytest.mark.parametrize("count", [0, 9])
def test_a_list_that_never_fits_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} addresses does not fit; allowed: 1 to 8"):
        AddressRing(8).make_room(count)
