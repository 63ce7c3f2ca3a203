import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from tensorplay.errors import ShapeError
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.gemm.dtype import DTYPES
from tensorplay.gemm.problem import LARGEST_SIZE

FLOAT32 = DTYPES[0]
PLAIN = GemmProblem(dtype=FLOAT32, m=2, n=3, k=4)
BATCH = dataclasses.replace(PLAIN, batch=2)
E4M3, E5M2 = (dtype for dtype in DTYPES if dtype.itemsize == 1)
NARROW = dataclasses.replace(PLAIN, dtype=E4M3)

REFUSED: list[tuple[GemmProblem, dict[str, Any]]] = [
    *[(PLAIN, {name: size}) for name in ("m", "n", "k", "batch") for size in (0, -1, LARGEST_SIZE + 1)],
    (PLAIN, {"ld_left": 4}),
    (PLAIN, {"ld_left": 2, "transpose_left": True}),
    (PLAIN, {"ld_right": 3}),
    (PLAIN, {"ld_right": 4, "transpose_right": True}),
    (PLAIN, {"ld_out": 3}),
    (PLAIN, {"ld_out": -5}),
    (PLAIN, {"ld_out": LARGEST_SIZE + 1}),
    (PLAIN, {"stride_left": 8}),
    (PLAIN, {"stride_right": 0}),
    (BATCH, {"stride_out": -1}),
    (BATCH, {"stride_out": LARGEST_SIZE + 1}),
    (PLAIN, {"activation": "swish"}),
    (PLAIN, {"activation": ""}),
    (PLAIN, {"alignment": 32}),
    (PLAIN, {"alignment": 0}),
    (PLAIN, {"workspace_mib": -1}),
    (PLAIN, {"workspace_mib": LARGEST_SIZE + 1}),
    (PLAIN, {"left_dtype": E4M3}),
    (PLAIN, {"left_dtype": DTYPES[2]}),
    (NARROW, {"left_dtype": FLOAT32}),
    (NARROW, {"left_dtype": E4M3}),
    *[(PLAIN, {"device": text}) for text in ("", "gpu", "-1", "01", "00", " 1", "1\n", "²", "\u0663", "9" * 19, "CPU")],
]


@pytest.mark.parametrize(("problem", "change"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_no_product_has_is_refused_by_name(problem: GemmProblem, change: dict[str, Any]) -> None:
    name = next(iter(change))
    with pytest.raises(ShapeError) as caught:
        dataclasses.replace(problem, **change)
    assert str(caught.value).startswith(f"{name} is {change[name]!r}")


@pytest.mark.parametrize("device", ["cpu", "0", "7", "12", "9" * 18])
def test_a_device_is_the_cpu_or_an_ordinal(device: str) -> None:
    assert dataclasses.replace(PLAIN, device=device).device == device


def test_stored_rows_are_as_long_as_the_storage_says_not_the_view() -> None:
    assert (PLAIN.left_columns, PLAIN.right_columns) == (4, 3)
    turned = dataclasses.replace(PLAIN, transpose_left=True, transpose_right=True)
    assert (turned.left_columns, turned.right_columns) == (2, 4)


def test_a_multiply_add_is_two_operations_and_four_times_that_when_complex() -> None:
    assert PLAIN.flops == 2 * 2 * 3 * 4
    assert BATCH.flops == 2 * PLAIN.flops
    complex64 = dtype_of_name("complex64")
    assert complex64 is not None
    assert dataclasses.replace(PLAIN, dtype=complex64).flops == 4 * PLAIN.flops


def test_an_operand_and_the_result_have_the_common_type_unless_theirs_is_given() -> None:
    assert (PLAIN.left_type, PLAIN.result_type) == (FLOAT32, FLOAT32)
    mixed = dataclasses.replace(NARROW, left_dtype=E5M2, out_dtype=FLOAT32)
    assert (mixed.left_type, mixed.dtype, mixed.result_type) == (E5M2, E4M3, FLOAT32)


def test_a_left_type_alone_makes_another_key() -> None:
    assert dataclasses.replace(NARROW, left_dtype=E5M2).key != NARROW.key


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": DTYPES[1]},
        {"m": 5},
        {"n": 5},
        {"k": 5},
        {"transpose_right": True},
        {"transpose_left": True},
        {"bias": True},
        {"device": "0"},
        {"ld_left": 9},
        {"ld_right": 9},
        {"ld_out": 9},
        {"batch": 3},
        {"stride_left": 0},
        {"stride_right": 0},
        {"stride_out": 0},
        {"activation": "relu"},
        {"activation": "gelu"},
        {"accumulate": True},
        {"out_dtype": DTYPES[2]},
        {"alignment": 8},
        {"accumulation": DTYPES[2]},
        {"workspace_mib": 0},
    ],
    ids=str,
)
def test_each_field_alone_makes_another_key(change: dict[str, Any]) -> None:
    assert dataclasses.replace(BATCH, **change).key != BATCH.key


def test_the_key_covers_every_field() -> None:
    assert len(PLAIN.key) == len(dataclasses.fields(GemmProblem))


def test_the_key_is_made_of_integers_only() -> None:
    assert all(isinstance(part, int) for part in BATCH.key)


@hypothesis_settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_keys_are_equal_exactly_when_problems_are(
    data: DataObject, problems_up_to: Callable[[int], SearchStrategy[GemmProblem]]
) -> None:
    # A space small enough that equal fields, and equal problems, come up; mixed so that few fields differ.
    one, other = data.draw(problems_up_to(2)), data.draw(problems_up_to(2))
    names = [field.name for field in dataclasses.fields(GemmProblem)]
    taken = data.draw(st.sets(st.sampled_from(names), max_size=4))
    try:
        mixed = dataclasses.replace(one, **{name: getattr(other, name) for name in taken})
    except ShapeError:
        mixed = other
    assert (mixed.key == one.key) == (mixed == one)
    assert (mixed.key == other.key) == (mixed == other)
