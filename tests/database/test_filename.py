import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.filename import (
    default_results_name,
    default_untuned_name,
    insert_ordinal,
    rejected_name,
    results_name,
    sibling_name,
)

CASES = json.loads((Path(__file__).parents[1] / "data" / "cases" / "settings.json").read_text(encoding="utf-8"))
FOLDERS = st.sampled_from(["", "./", "/", "a.b/", "%d/", "/tmp.d/x%d/", "../"])  # noqa: S108 - only a name
BASES = st.text("ab.%d0_", min_size=1).filter(lambda base: base.strip("."))


@pytest.mark.parametrize(("name", "ordinal", "expected"), CASES["ordinal"])
def test_the_ordinal_goes_where_the_cases_say(name: str, ordinal: int | str, expected: str) -> None:
    assert insert_ordinal(name, str(ordinal)) == expected


@given(FOLDERS, BASES, st.sampled_from(["0", "7", "12", "cpu"]))
def test_folders_are_never_touched_and_only_the_ordinal_is_added(folder: str, base: str, ordinal: str) -> None:
    named = insert_ordinal(folder + base, ordinal)
    assert named.startswith(folder)
    new_base = named.removeprefix(folder)
    assert "/" not in new_base
    assert len(new_base) == len(base) + len(ordinal) - (2 if "%d" in base else 0)
    if "%d" in base:
        assert new_base == base.replace("%d", ordinal, 1)
    elif "." in base.lstrip("."):
        assert new_base.rpartition(".")[2] == base.rpartition(".")[2]
    else:
        assert new_base == base + ordinal


@pytest.mark.parametrize("device", ["0", "3", "cpu"])
def test_default_names_carry_the_device(device: str) -> None:
    assert default_results_name(device) == f"tunableop_results{device}.csv"
    assert default_untuned_name(device) == f"tunableop_untuned{device}.csv"


def test_what_the_environment_names_gets_the_device_too_and_nothing_means_the_default() -> None:
    assert results_name("a/tuned.csv", "1") == "a/tuned1.csv"
    assert results_name("", "cpu") == "tunableop_resultscpu.csv"


@pytest.mark.parametrize(
    ("path", "sibling"),
    [
        ("tunableop_results0.csv", "tunableop_results0.3fa9c1d2.csv"),
        ("/d.x/results", "/d.x/results.3fa9c1d2"),
        ("a.tar.gz", "a.tar.3fa9c1d2.gz"),
        (".cache", ".cache.3fa9c1d2"),
        ("..csv", "..csv.3fa9c1d2"),
        ("name.", "name.3fa9c1d2."),
    ],
)
def test_a_sibling_carries_the_digest_before_the_last_extension(path: str, sibling: str) -> None:
    assert sibling_name(path, "3fa9c1d2") == sibling


def test_rejected_lines_are_kept_beside_the_file() -> None:
    assert rejected_name("a/tune0.csv") == "a/tune0.csv.rejected"
