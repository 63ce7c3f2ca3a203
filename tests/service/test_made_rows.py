from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.made_rows import MadeRows

NUMBERS = st.none() | st.integers(-12, 12)


@given(st.lists(st.tuples(st.integers(), st.text(max_size=3)), max_size=10), NUMBERS, NUMBERS)
def test_rows_are_those_of_a_list_and_each_is_made_when_it_is_asked_for(
    plain: list[tuple[int, str]], begin: int | None, end: int | None
) -> None:
    made: list[tuple[int, str]] = []

    def make(each: tuple[int, str]) -> str:
        made.append(each)
        return repr(each)

    rows, expected = MadeRows(plain, make), list(map(repr, plain))
    assert len(rows) == len(plain)
    assert rows[begin:end] == expected[begin:end]
    assert made == plain[begin:end]
    assert list(rows) == expected
    assert [rows[place] for place in range(-len(plain), len(plain))] == expected * 2
