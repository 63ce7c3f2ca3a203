import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.ordinal import configured_name, held_ordinal
from tensorplay.database.filename import insert_ordinal

NAME = st.text(st.sampled_from("ab0%d.cpu/"), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("name", "ordinal", "configured"),
    [
        ("sharedcpu.csv", "cpu", "shared.csv"),
        ("a/b0/tuned12.csv", "12", "a/b0/tuned.csv"),
        ("/a/winners0", "0", "/a/winners"),
        ("cpu.csv", "cpu", "%d.csv"),
        ("x/0", "0", "x/%d"),
        ("tuned.csv", "", None),
        ("cpu/tuned.csv", "", None),
        ("tuned0.3fa9c1de.csv", "", None),
        (".csv", "", None),
    ],
)
def test_the_ordinal_at_the_end_of_a_name_is_found_and_what_a_setting_must_say_for_it(
    name: str, ordinal: str, configured: str | None
) -> None:
    assert (held_ordinal(name), configured_name(name)) == (ordinal, configured)


@given(NAME)
def test_what_a_setting_must_say_means_the_name_again(name: str) -> None:
    configured = configured_name(name)
    if configured is not None:
        assert insert_ordinal(configured, held_ordinal(name)) == name
        assert configured.rpartition("/")[2]


@given(NAME, st.sampled_from(["cpu", "0", "17"]))
def test_no_name_without_an_ordinal_means_anything(name: str, ordinal: str) -> None:
    assert (configured_name(name) is None) or held_ordinal(name) != ""
    inserted = insert_ordinal(name, ordinal)
    assert held_ordinal(inserted) == "" or configured_name(inserted) is not None or "%d" in inserted
