"""Which of cuBLAS's numbers multiply a problem."""

from dataclasses import replace
from typing import Any

import pytest

from tensorplay.backends.cublaslt.number_types import NumberTypes, number_types
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.gemm.dtype import DTYPES

E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"


def posed(name: str, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=32, n=48, k=64, device="0"), **further)


def mixed(left: str, right: str, out: str) -> GemmProblem:
    return posed(
        right,
        transpose_right=True,
        left_dtype=None if left == right else dtype_of_name(left),
        out_dtype=None if out == right else dtype_of_name(out),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float32", NumberTypes(68, 0, 0, 0, 0, 0, 0)),
        ("tf32", NumberTypes(77, 0, 0, 0, 0, 0, 0)),
        ("float64", NumberTypes(70, 1, 1, 1, 1, 1, 1)),
        ("float16", NumberTypes(68, 0, 2, 2, 2, 2, 2)),
        ("bfloat16", NumberTypes(68, 0, 14, 14, 14, 14, 14)),
        ("complex64", NumberTypes(68, 4, 4, 4, 4, 4, 4)),
        ("complex128", NumberTypes(70, 5, 5, 5, 5, 5, 5)),
    ],
)
def test_each_type_has_the_librarys_numbers(name: str, expected: NumberTypes) -> None:
    assert number_types(posed(name)) == expected


def test_half_precision_may_be_summed_in_half_and_is_then_scaled_in_half() -> None:
    half = dtype_of_name("float16")
    assert number_types(posed("float16", accumulation=half)) == NumberTypes(64, 2, 2, 2, 2, 2, 2)


def test_naming_the_plain_accumulation_changes_nothing() -> None:
    single = dtype_of_name("float32")
    assert number_types(posed("bfloat16", accumulation=single)) == number_types(posed("bfloat16"))


@pytest.mark.parametrize(
    ("name", "accumulation"), [("bfloat16", "float16"), ("float64", "float16"), ("float16", "tf32")]
)
def test_an_accumulation_that_the_library_has_not_is_refused(name: str, accumulation: str) -> None:
    with pytest.raises(KernelUnavailableError, match=accumulation):
        number_types(posed(name, accumulation=dtype_of_name(accumulation)))


def test_a_wider_result_is_also_what_is_added_to() -> None:
    assert number_types(posed("bfloat16", out_dtype=dtype_of_name("float32"))) == NumberTypes(68, 0, 14, 0, 0, 14, 0)


@pytest.mark.parametrize(
    ("left", "right", "out", "expected"),
    [
        (E4M3, E4M3, E4M3, NumberTypes(68, 0, 28, 14, 28, 28, 14)),
        (E4M3, E4M3, "bfloat16", NumberTypes(68, 0, 28, 14, 14, 28, 14)),
        (E4M3, E4M3, "float16", NumberTypes(68, 0, 28, 2, 2, 28, 2)),
        (E4M3, E4M3, "float32", NumberTypes(68, 0, 28, 0, 0, 28, 14)),
        (E5M2, E4M3, "float32", NumberTypes(68, 0, 28, 0, 0, 29, 14)),
        (E4M3, E5M2, E5M2, NumberTypes(68, 0, 29, 14, 29, 28, 14)),
        (E5M2, E4M3, E5M2, NumberTypes(68, 0, 28, 14, 29, 29, 14)),
        (E5M2, E4M3, E4M3, NumberTypes(68, 0, 28, 14, 28, 29, 14)),
    ],
)
def test_fp8_adds_bfloat16_where_the_library_adds_no_such_result(
    left: str, right: str, out: str, expected: NumberTypes
) -> None:
    assert number_types(mixed(left, right, out)) == expected


@pytest.mark.parametrize(
    ("left", "right", "out", "reason"),
    [
        (E5M2, E5M2, "bfloat16", "by itself"),
        (E4M3, E4M3, E5M2, "as float8_e5m2"),
        (E4M3, E5M2, "float64", "as float64"),
    ],
)
def test_types_that_the_library_does_not_multiply_are_refused(left: str, right: str, out: str, reason: str) -> None:
    with pytest.raises(KernelUnavailableError, match=reason):
        number_types(mixed(left, right, out))


@pytest.mark.parametrize(
    ("further", "reason"),
    [
        ({"transpose_right": False}, "row-major"),
        ({"transpose_left": True}, "row-major"),
        ({"n": 8}, "multiples of 16, these are 8 and 64"),
        ({"k": 100}, "multiples of 16"),
        ({"alignment": 8}, "16 bytes"),
        ({"ld_left": 72}, "16 bytes"),
        ({"ld_right": 72}, "16 bytes"),
        ({"out_dtype": dtype_of_name("float32"), "ld_out": 49}, "16 bytes"),
        ({"batch": 2, "stride_right": 8}, "16 bytes"),
    ],
)
def test_fp8_that_lies_as_no_kernel_reads_it_is_refused_with_the_reason(further: dict[str, Any], reason: str) -> None:
    plain = posed(E4M3, transpose_right=True)
    with pytest.raises(KernelUnavailableError, match=reason):
        number_types(replace(plain, **further))


def test_fp8_has_any_number_of_rows_and_padding_of_whole_vectors() -> None:
    problem = posed(E4M3, transpose_right=True, m=7, ld_left=80, ld_right=96)
    assert number_types(problem) == number_types(posed(E4M3, transpose_right=True))
    wide = replace(problem, out_dtype=dtype_of_name("float32"), ld_out=52, batch=2, stride_left=0, stride_right=6400)
    assert number_types(wide).out == 0


def test_only_e5m2_has_no_product_with_itself() -> None:
    refused = set()
    for dtype in DTYPES:
        try:
            number_types(posed(dtype.name, transpose_right=True))
        except KernelUnavailableError:
            refused.add(dtype.name)
    assert refused == {E5M2}
