import pytest

from tensorplay.measure.traits import Traits, traits_of

LT = "lt_id66_tile394_stages35_splitk-1_red2_swizzle0_custom7_inner0_cluster4"


@pytest.mark.parametrize(
    ("kernel", "family", "values"),
    [
        (LT, "lt_id66", {"tile": 394, "stages": 35, "splitk": -1, "custom": 7, "cluster": 4}),
        ("host_numpy_dot1_rows128", "host_numpy", {"dot": 1, "rows": 128}),
        ("skinny_tile8_split4", "skinny", {"tile": 8, "split": 4}),
        ("cublas", "cublas", {}),
        ("Default", "Default", {}),
    ],
)
def test_words_and_the_id_name_the_family_and_numbers_are_settings(
    kernel: str, family: str, values: dict[str, int]
) -> None:
    traits = traits_of(kernel)
    assert traits.family == family
    assert values.items() <= dict(traits.values).items()


def test_changes_are_the_settings_that_differ() -> None:
    one, other = traits_of("host_numpy_dot1_rows128"), traits_of("host_numpy_rows64_swap1")
    assert one.changes(other) == [("dot", 1, None), ("rows", 128, 64), ("swap", None, 1)]
    assert one.changes(Traits("host_numpy", (("rows", 128), ("dot", 1)))) == []
