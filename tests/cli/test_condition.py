import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.condition import parse_condition
from tensorplay.cli.product_row import ProductRow, row_of_untuned, row_of_winner
from tensorplay.database.record import Entry
from tensorplay.gemm import Signature

ROW = row_of_winner(
    Entry("GemmTunableOp_Float32", "taT_m16_n1024_k512_bias1_devcpu_tbT_batch3_stridea0", "host_numpy_threads2", 0.25)
)


def test_a_row_takes_its_signature_apart() -> None:
    assert (ROW.dtype, ROW.device, ROW.m, ROW.n, ROW.k, ROW.batch) == ("float32", "cpu", 16, 1024, 512, 3)
    assert ROW.flags == "T bias tbT batch3 stridea0"
    assert ROW.flops == 2 * 3 * 16 * 1024 * 512


@pytest.mark.parametrize(
    "text",
    [
        "m=16",
        "m==16",
        "m>=16",
        " m <= 16 ",
        "m<16.5",
        "m>1e1",
        "m!=17",
        "time<0.5",
        "flops>=50331648",
        "batch=3",
        "dtype=float32",
        "dtype!=float64",
        "kernel=host_*",
        "kernel!=lt_*",
        "op=*Float32",
        "params=taT_*",
        "device=cpu",
        "flags=*bias*",
    ],
)
def test_a_condition_that_holds(text: str) -> None:
    assert parse_condition(text)(ROW)


@pytest.mark.parametrize("text", ["m>16", "m=15", "time>0.25", "dtype=float64", "kernel=host", "kernel!=host_*"])
def test_a_condition_that_does_not_hold(text: str) -> None:
    assert not parse_condition(text)(ROW)


@pytest.mark.parametrize("text", ["kernel=*", "kernel!=host_*", "time>=0", "time!=1"])
def test_no_condition_holds_for_a_value_that_is_not_there(text: str) -> None:
    row = row_of_untuned(Signature(ROW.op, ROW.params))
    assert not parse_condition(text)(row)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m", "write it as"),
        ("", "write it as"),
        ("size>3", "allowed: op, params"),
        ("m>=big", "a number"),
        ("m>nan", "a number"),
        ("m<inf", "a number"),
        ("dtype>float32", "= or !="),
    ],
)
def test_what_is_no_condition_is_an_error_that_says_what_is(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_condition(text)


@given(st.sampled_from(["m", "n", "k"]), st.sampled_from(["<", "<=", "=", "!=", ">=", ">"]), st.integers(1, 2000))
def test_comparisons_of_numbers_are_those_of_python(key: str, comparison: str, number: int) -> None:
    value: int = getattr(ROW, key)
    expected = {
        "<": value < number,
        "<=": value <= number,
        "=": value == number,
        "!=": value != number,
        ">=": value >= number,
        ">": value > number,
    }[comparison]
    assert parse_condition(f"{key}{comparison}{number}")(ROW) is expected


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_makes_a_condition_or_a_value_error(text: str) -> None:
    try:
        condition = parse_condition(text)
    except ValueError:
        return
    assert condition(ROW) in {True, False}


def test_a_row_without_a_time_has_none() -> None:
    row: ProductRow = row_of_winner(Entry(ROW.op, ROW.params, "Default", 0.0))
    assert row.time_ms is None
