"""Winners in great number: entries for whoever asks, and nothing that the garbage collector looks at."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database import csv_text
from tensorplay.database.csv_text import each_validator, format_results, formatted_results, parse_results
from tensorplay.database.entries import Entries
from tensorplay.database.record import Entry, Validator
from tensorplay.database.results import Results

OP = "GemmTunableOp_Float32"
MANY = 5000
GIVEN = [Entry(OP, f"taN_m{m * 7919 % MANY + 1}_n3_k5_bias0_dev0", "Default", float(m)) for m in range(MANY)]
LINES = st.lists(
    st.sampled_from(
        ["Validator,A,b", "Validator,A,c", "Validator,,x", "Validator,A", "# c", "", "x", f"{OP},taN_m1,Default,1"]
    )
)


def growth(before: int) -> int:
    gc.collect()
    return len(gc.get_objects()) - before


def test_every_way_to_an_entry_gives_one() -> None:
    entries = Entries(GIVEN[:3])
    entries.append(GIVEN[3])
    assert entries == GIVEN[:4]
    assert list(entries) == GIVEN[:4]
    for each in (*entries, entries[0], *entries[1:3]):
        assert isinstance(each, Entry)


def test_no_number_of_entries_is_anything_to_look_at() -> None:
    data = format_results([Validator("A", "b")], GIVEN).encode()
    gc.collect()
    before = len(gc.get_objects())
    parsed = parse_results(data)
    held = Results()
    held.merge(parsed.entries, overwrite=True)
    assert growth(before) < MANY / 10
    assert (len(parsed.entries), len(held), held.entries()) == (MANY, MANY, sorted(GIVEN))


def test_a_file_is_sorted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_at_once: list[int] = []

    def counted(items: list[Entry]) -> list[Entry]:
        found = sorted(items)
        sorted_at_once.append(len(found))
        return found

    monkeypatch.setattr(csv_text, "sorted", counted, raising=False)
    assert parse_results("".join(formatted_results((), GIVEN))).entries == sorted(GIVEN)
    assert max(sorted_at_once) < MANY / 2


@given(LINES)
def test_the_validators_alone_are_those_of_the_whole(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    assert tuple(dict.fromkeys(each_validator(data))) == parse_results(data).validators
