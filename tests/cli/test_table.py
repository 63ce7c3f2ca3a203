from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.table import Column, least_width, plain_table, stacked

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


def test_what_is_copied_and_numbers_keep_their_width_and_text_may_be_broken() -> None:
    columns = (Column("id", is_whole=True), Column("text"), Column("a long title"), Column("time", is_number=True))
    assert least_width(columns, [["x" * 40, "y" * 30, "z", "1 us"]]) == 40 + 12 + 12 + 4
    assert least_width(columns, []) == len("idtexta long titletime")


def test_rows_below_each_other_begin_with_what_is_copied_and_leave_out_what_is_not_known() -> None:
    columns = (Column("op"), Column("kernel", is_whole=True), Column("time", is_number=True), Column("why not"))
    rows = [["Float32", "k" * 70, "1 us", "took too long by far"], ["Float32", "short", "-", ""]]
    assert list(stacked(columns, rows, 40)) == [
        "k" * 70,
        "    op: Float32; time: 1 us; why not:",
        "    took too long by far",
        "short",
        "    op: Float32",
    ]
    assert list(stacked(columns[2:], [["1 us", "x"]], 40)) == ["time 1 us", "    why not: x"]
