import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.render import bar, count, duration, multiple, printable, rate, spread


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "-"),
        (0.0, "-"),
        (1e-6, "1.00 ns"),
        (0.000123, "123 ns"),
        (0.0019234, "1.92 us"),
        (0.0123, "12.3 us"),
        (0.9994, "999 us"),
        (0.9996, "1.00 ms"),
        (9.996, "10.0 ms"),
        (99.96, "100 ms"),
        (999.6, "1.00 s"),
        (75_000.0, "75.0 s"),
        (1e300, "1e+297 s"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_reads_best(milliseconds: float | None, text: str) -> None:
    assert duration(milliseconds) == text


@given(st.floats(1e-6, 1e8))
def test_a_duration_read_back_is_within_half_a_percent(milliseconds: float) -> None:
    text = duration(milliseconds)
    number, unit = text.split(" ")
    assert math.isclose(float(number) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[unit], milliseconds, rel_tol=6e-3)
    assert re.fullmatch(r"[0-9.]+(e\+0[0-9])?", number)


@pytest.mark.parametrize(
    ("flops", "milliseconds", "text"),
    [
        (2_000_000_000, 1.0, "2.00 TFLOP/s"),
        (2_000, 1.0, "2.00 MFLOP/s"),
        (2_000_000, 1.0, "2.00 GFLOP/s"),
        (2_000, 0.0, "-"),
        (2_000, None, "-"),
    ],
)
def test_a_rate_is_operations_a_second_and_none_where_no_time_was_taken(
    flops: int, milliseconds: float | None, text: str
) -> None:
    assert rate(flops, milliseconds) == text


def test_a_gain_a_spread_and_a_count_read_as_people_write_them() -> None:
    assert [multiple(factor) for factor in (0.00123, 0.5, 1.5, 12.34)] == ["0.00123x", "0.50x", "1.50x", "12.3x"]
    assert multiple(None) == "-"
    assert [spread(1.0 - share, 1.0, 1.0 + share) for share in (0.0, 0.031, 0.1, 2)] == [
        "±0.0%",
        "±3.1%",
        "±10%",
        "±over 100%",
    ]
    assert spread(0.0, 0.0, 0.0) == "-"
    assert [count(number, "line") for number in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]
    assert count(2, "thing is", "things are") == "2 things are"


@given(st.text(st.characters(exclude_categories=[])))
def test_whatever_the_text_what_is_shown_is_one_line_of_printable_characters(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert shown.splitlines() in ([shown], [])
    shown.encode()


@given(st.text())
def test_printable_text_is_shown_as_it_is(text: str) -> None:
    if text.isprintable():
        assert printable(text) == text
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\r", "a\\nb\\r"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\x9b31m", "\\x9b31m"),
        ("\udcff", "\\udcff"),
        ("[red]x[/red]", "[red]x[/red]"),
        ("Zürich", "Zürich"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_long_text_is_cut_and_says_so() -> None:
    assert printable("x" * 100, 10) == "x" * 7 + "..."
    assert printable("x" * 10, 10) == "x" * 10


@pytest.mark.parametrize(
    ("share", "letters", "blocks"),
    [
        (0.0, "", ""),
        (0.001, "", ""),
        (0.02, "#", "\N{LEFT ONE EIGHTH BLOCK}"),
        (0.5, "####", "\N{FULL BLOCK}" * 4),
        (0.55, "####", "\N{FULL BLOCK}" * 4 + "\N{LEFT THREE EIGHTHS BLOCK}"),
        (1.0, "########", "\N{FULL BLOCK}" * 8),
        (7.0, "########", "\N{FULL BLOCK}" * 8),
        (-1.0, "", ""),
    ],
)
def test_a_bar_fills_its_share_of_the_width(share: float, letters: str, blocks: str) -> None:
    assert bar(share, 8, blocks=False) == letters
    assert bar(share, 8, blocks=True) == blocks
