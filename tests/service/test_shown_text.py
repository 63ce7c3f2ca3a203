"""Texts from outside, as they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.shown_text import encodable, unmasked

ANY = st.text(st.characters())


@given(ANY)
def test_what_is_encodable_has_utf8_and_what_had_it_stays(text: str) -> None:
    shown = encodable(text)
    shown.encode()
    assert (shown == text) == (not any("\ud800" <= each <= "\udfff" for each in text))


@given(ANY)
def test_what_is_unmasked_steers_nothing_and_stays_so(text: str) -> None:
    shown = unmasked(text)
    shown.encode()
    assert unmasked(shown) == shown
    assert not set(shown) & {"\x1b", "\x00", "\x9b", "\u202e", "\u2066", "\u200f", "\r"}


@pytest.mark.parametrize("text", ["", "kernel_1", "größe", "行列", "a\tb\nc", "\u00a0", "👩\u200d💻"])
def test_what_hides_nothing_stays_as_it_is(text: str) -> None:
    assert encodable(text) == text
    assert unmasked(text) == text


def test_an_escape_says_what_was_there() -> None:
    assert unmasked("a\x1b[31m\u202eb\udce9") == "a\\x1b[31m\\u202eb\\udce9"
    assert encodable("caf\udce9.csv") == "caf\\udce9.csv"
