from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.table import Column, plain_table

CELL = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)


def test_text_stands_at_the_left_and_numbers_at_the_right() -> None:
    columns = (Column("name"), Column("time", is_number=True))
    assert list(plain_table(columns, [["a", "1 us"], ["longer", "10 us"]])) == [
        "name     time",
        "a        1 us",
        "longer  10 us",
    ]


def test_a_table_without_rows_is_its_heads() -> None:
    assert list(plain_table((Column("a"), Column("b")), [])) == ["a  b"]


@given(st.lists(st.tuples(CELL, CELL, CELL), max_size=6))
def test_every_cell_starts_or_ends_where_its_column_does(rows: list[tuple[str, str, str]]) -> None:
    columns = (Column("one"), Column("two", is_number=True), Column("three"))
    lines = list(plain_table(columns, rows))
    table = [("one", "two", "three"), *rows]
    first, second = (max(len(cells[place]) for cells in table) for place in (0, 1))
    for line, (one, two, three) in zip(lines, table, strict=True):
        assert line[: first + 2] == one.ljust(first + 2)
        assert line[first + 2 : first + second + 4] == two.rjust(second) + "  "
        assert line[first + second + 4 :] == three
