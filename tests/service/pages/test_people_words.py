"""What people are told: counts of what was done, and refusals without words for programs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.pages.people_words import done_text, place_words, refusal_words, told_of

LOADED = {"merged": 3, "replaced": 1200, "kept": 0, "pinned": 1, "rejected": 2, "name": "x.csv"}


def test_a_load_is_told_by_its_counts() -> None:
    told = told_of("files/x.csv/load", LOADED)
    assert told == "load.3.1200.0.1.2"
    assert done_text(told) == "Loaded: 3 merged, 1,200 replaced, 0 kept as they were, 1 pinned, 2 lines rejected."
    assert done_text("load.0.0.0.0.0") == "Loaded: the winners in memory are those of the file already."


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("files/save", {"written": 1}),
        ("files/x.csv/load", {}),
        ("files/x.csv/load", LOADED | {"kept": "<b>"}),
        ("switches", LOADED),
        ("files/x.csv/load?x=y", LOADED),
    ],
)
def test_whatever_counts_nothing_is_done(path: str, document: dict[str, object]) -> None:
    assert told_of(path, document) is None


@given(st.text() | st.from_regex(r"(load|save)(\.[0-9a-z<]{0,14}){3,6}", fullmatch=True))
def test_an_address_makes_a_page_say_nothing_but_counts(told: str) -> None:
    assert done_text(told) == "Done." or done_text(told).startswith(("Loaded: ", "Saved: "))
    assert "<" not in done_text(told) and "{" not in done_text(told)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("String should match pattern '^[A-Za-z0-9_]{1,16}$'", "has letters, or a form, that it may not have"),
        ("Input should be 'yes' or 'no'", "must be yes or no"),
        ("Input should be a valid integer, unable to parse string as an integer", "must be a whole number"),
        ("Input should be greater than or equal to 1", "must be 1 or more"),
        ("String should have at most 200 characters", "must have at most 200 characters"),
        ("Extra inputs are not permitted", "is not known here"),
    ],
)
def test_what_does_not_fit_is_said_without_patterns(message: str, told: str) -> None:
    assert place_words(["query", "sort"], message) == ("sort", told)


def test_refusals_that_are_for_programs_are_said_otherwise() -> None:
    assert "use “Save” in its row" in refusal_words("exists", "send If-Match")
    assert refusal_words("pinned", "this winner is pinned") == "this winner is pinned"
