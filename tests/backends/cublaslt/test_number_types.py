"""Which of cuBLAS's numbers multiply a problem."""

from dataclasses import replace
from typing import Any

import pytest

from tensorplay.backends.cublaslt.number_types import NumberTypes, number_types
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.gemm.dtype import DTYPES


def posed(name: str, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=32, n=48, k=64, device="0"), **further)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float32", NumberTypes(68, 0, 0, 0, 0)),
        ("tf32", NumberTypes(77, 0, 0, 0, 0)),
        ("float64", NumberTypes(70, 1, 1, 1, 1)),
        ("float16", NumberTypes(68, 0, 2, 2, 2)),
        ("bfloat16", NumberTypes(68, 0, 14, 14, 14)),
        ("complex64", NumberTypes(68, 4, 4, 4, 4)),
        ("complex128", NumberTypes(70, 5, 5, 5, 5)),
    ],
)
def test_each_type_has_the_librarys_numbers(name: str, expected: NumberTypes) -> None:
    assert number_types(posed(name)) == expected


def test_half_precision_may_be_summed_in_half_and_is_then_scaled_in_half() -> None:
    half = dtype_of_name("float16")
    assert number_types(posed("float16", accumulation=half)) == NumberTypes(64, 2, 2, 2, 2)


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
    assert number_types(posed("bfloat16", out_dtype=dtype_of_name("float32"))) == NumberTypes(68, 0, 14, 0, 0)


def test_fp8_results_are_added_to_in_bfloat16() -> None:
    assert number_types(posed("float8_e4m3fn", transpose_right=True)) == NumberTypes(68, 0, 28, 14, 28)


@pytest.mark.parametrize(
    ("name", "further", "reason"),
    [
        ("float8_e4m3fn", {}, "row-major"),
        ("float8_e4m3fn", {"transpose_right": True, "transpose_left": True}, "row-major"),
        ("float8_e4m3fn", {"transpose_right": True, "m": 8}, "multiples of 16"),
        ("float8_e4m3fn", {"transpose_right": True, "k": 100}, "multiples of 16"),
        ("float8_e5m2", {"transpose_right": True}, "by itself"),
    ],
)
def test_fp8_that_the_library_cannot_multiply_is_refused_with_the_reason(
    name: str, further: dict[str, Any], reason: str
) -> None:
    with pytest.raises(KernelUnavailableError, match=reason):
        number_types(posed(name, **further))


def test_only_e5m2_has_no_product_of_any_shape() -> None:
    refused = set()
    for dtype in DTYPES:
        try:
            number_types(posed(dtype.name, transpose_right=True))
        except KernelUnavailableError:
            refused.add(dtype.name)
    assert refused == {"float8_e5m2"}
