import re

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.record import Validator
from tensorplay.database.validators import ValidatorMismatch, compare, digest

BUILDS = st.dictionaries(st.sampled_from("ABCD"), st.sampled_from("123"), min_size=1).map(
    lambda build: tuple(Validator(name, value) for name, value in build.items())
)


@given(BUILDS, st.randoms())
def test_the_digest_is_eight_hexadecimal_digits_in_any_order(build: tuple[Validator, ...], random: object) -> None:
    assert re.fullmatch("[0-9a-f]{8}", digest(build))
    assert digest(build) == digest(tuple(reversed(build))) == digest(tuple(sorted(build)))


@given(BUILDS, BUILDS)
def test_digests_of_different_builds_differ(one: tuple[Validator, ...], other: tuple[Validator, ...]) -> None:
    assert (digest(one) == digest(other)) == (set(one) == set(other))


def test_the_digest_of_a_build_never_changes_since_files_are_named_by_it() -> None:
    assert digest([Validator("TP_TUNABLEOP_FORMAT", "1"), Validator("HOST_CPU", "Prozessor für alle")]) == "abc9ce4a"


def test_names_and_values_cannot_be_confused_in_the_digest() -> None:
    assert digest([Validator("A", "B"), Validator("C", "D")]) != digest([Validator("A", "B,C"), Validator("D", "")])


@given(BUILDS, st.lists(st.builds(Validator, st.sampled_from("ABCD"), st.sampled_from("123"))))
def test_validators_match_exactly_when_they_are_equal_as_sets(
    expected: tuple[Validator, ...], found: list[Validator]
) -> None:
    mismatches = compare(expected, found)
    assert (mismatches == ()) == (set(expected) == set(found))
    differing = {name for name, _ in set(expected) ^ set(found)}
    assert [mismatch.name for mismatch in mismatches] == sorted(differing)


def test_every_difference_is_named_with_what_was_expected_and_found() -> None:
    expected = [Validator("FORMAT", "1"), Validator("CPU", "x, y"), Validator("BLAS", "3"), Validator("SAME", "1")]
    found = [
        Validator("SAME", "1"),
        Validator("CPU", "z"),
        Validator("FORMAT", "1"),
        Validator("FORMAT", "999"),
        Validator("ELSE", "7"),
        Validator("SAME", "1"),
    ]
    mismatches = compare(expected, found)
    assert mismatches == (
        ValidatorMismatch("BLAS", "3", ()),
        ValidatorMismatch("CPU", "x, y", ("z",)),
        ValidatorMismatch("ELSE", None, ("7",)),
        ValidatorMismatch("FORMAT", "1", ("1", "999")),
    )
    assert [str(mismatch) for mismatch in mismatches] == [
        "BLAS: expected '3', found nothing",
        "CPU: expected 'x, y', found 'z'",
        "ELSE: expected nothing, found '7'",
        "FORMAT: expected '1', found '1' and '999'",
    ]


def test_a_file_that_says_nothing_about_its_build_does_not_match() -> None:
    assert compare([Validator("A", "1")], []) == (ValidatorMismatch("A", "1", ()),)
