import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.bench_shape import DEFAULT_SHAPES, BenchShape, parse_shape, read_shapes
from tensorplay.gemm.dtype import DTYPES

SIZES = st.integers(1, 10**18 - 1)


@given(
    st.builds(
        BenchShape,
        st.sampled_from([dtype.name for dtype in DTYPES]),
        SIZES,
        SIZES,
        SIZES,
        transposed=st.booleans(),
        bias=st.booleans(),
    )
)
def test_the_text_of_a_shape_names_that_shape(shape: BenchShape) -> None:
    assert parse_shape(str(shape)) == shape


def test_flags_may_stand_in_any_order() -> None:
    assert parse_shape("float32:2x3x4:bias:T") == BenchShape("float32", 2, 3, 4, transposed=True, bias=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "float32",
        "float32:2x3",
        "float32:0x3x4",
        "float32:-1x3x4",
        "float32:2x3x4:t",
        "float32:2x3x4:",
        "float12:2x3x4",
        "float32:2x3x4 ",
        "float32:" + "9" * 5000 + "x1x1",
        "float32:1000000000000000000x1x1",
        "float32:٢x3x4",
    ],
)
def test_a_text_that_is_no_shape_is_an_error_that_says_what_is(text: str) -> None:
    with pytest.raises(ValueError, match="allowed"):
        parse_shape(text)


@given(st.text())
def test_any_text_is_a_shape_or_a_value_error(text: str) -> None:
    try:
        shape = parse_shape(text)
    except ValueError:
        return
    assert parse_shape(str(shape)) == shape


def test_the_shapes_for_every_machine_are_few_and_different() -> None:
    assert 8 <= len(DEFAULT_SHAPES) == len(set(DEFAULT_SHAPES)) <= 10


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_file_of_rows_gives_products_with_a_transposed_weight(tmp_path: Path, wrapped: bool) -> None:
    rows = [["float32", 2, 3, 4, True], ["bfloat16", 1, 2, 3, False]]
    path = tmp_path / "shapes.json"
    path.write_text(json.dumps({"about": "x", "shapes": rows} if wrapped else rows))
    assert read_shapes(str(path)) == [
        BenchShape("float32", 2, 3, 4, transposed=True, bias=True),
        BenchShape("bfloat16", 1, 2, 3, transposed=True),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("\xff", "no JSON"),
        ("[]", "no list of shapes"),
        ('{"rows": []}', "no list of shapes"),
        ("3", "no list of shapes"),
        ('[["float32", 2, 3, 4]]', "row 1"),
        ('[["float32", 2, 3, 4, false], ["float32", 2, 3, 4, 1]]', "row 2"),
        ('[["float32", true, 3, 4, false]]', "row 1"),
        ('[["float32", 2.5, 3, 4, false]]', "row 1"),
        ('[["float32", 0, 3, 4, false]]', "row 1"),
        ('[["float99", 1, 3, 4, false]]', "row 1"),
    ],
)
def test_a_file_that_is_no_list_of_shapes_is_an_error_that_names_the_row(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "shapes.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=said):
        read_shapes(str(path))
