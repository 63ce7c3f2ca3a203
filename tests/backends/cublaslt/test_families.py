"""Which products are tuned."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.families import is_tunable_problem
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.gemm.dtype import DTYPES
from tensorplay.gemm.problem import ACTIVATIONS


def posed(name: str, **further: Any) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, m=32, n=48, k=64, device="0"), **further)


@pytest.mark.parametrize(
    ("name", "further", "plan", "everything"),
    [
        ("float32", {}, True, True),
        ("tf32", {}, True, True),
        ("float64", {"accumulate": True}, True, True),
        ("float32", {"bias": True}, True, True),
        ("float16", {"bias": True}, True, True),
        ("bfloat16", {"bias": True, "accumulate": True}, True, True),
        ("float16", {}, False, True),
        ("bfloat16", {"transpose_right": True}, False, True),
        ("float32", {"batch": 3}, False, True),
        ("float32", {"activation": "relu"}, False, True),
        ("float16", {"activation": "gelu", "bias": True}, False, True),
        ("complex64", {}, False, True),
        ("complex128", {"batch": 2}, False, True),
        ("float8_e4m3fn", {"transpose_right": True}, False, True),
        ("float8_e4m3fn", {}, False, False),
        ("float8_e5m2", {"transpose_right": True}, False, False),
        ("float8_e5m2", {"transpose_right": True, "left_dtype": dtype_of_name("float8_e4m3fn")}, False, True),
        ("float8_e4m3fn", {"transpose_right": True, "bias": True}, False, True),
        ("complex64", {"bias": True}, False, False),
        ("complex64", {"activation": "relu"}, False, False),
        ("float32", {"alignment": 2}, False, False),
        ("complex64", {"alignment": 8}, False, True),
        ("complex64", {"alignment": 4}, False, False),
        ("complex128", {"alignment": 8}, False, False),
        ("bfloat16", {"alignment": 2, "bias": True}, True, True),
        ("float32", {"device": "cpu"}, False, False),
    ],
)
def test_the_families_hold_what_their_names_say(
    name: str, further: dict[str, Any], plan: bool, everything: bool
) -> None:
    problem = posed(name, **further)
    assert is_tunable_problem(problem, "plan") is plan
    assert is_tunable_problem(problem, "all") is everything


@given(
    name=st.sampled_from([dtype.name for dtype in DTYPES]),
    bias=st.booleans(),
    accumulate=st.booleans(),
    activation=st.sampled_from(ACTIVATIONS),
    batch=st.integers(1, 3),
    alignment=st.sampled_from((16, 8, 4, 2, 1)),
    transpose_right=st.booleans(),
)
def test_what_plan_tunes_is_tuned_by_all_too(name: str, **further: Any) -> None:
    problem = posed(name, **further)
    assert not is_tunable_problem(problem, "plan") or is_tunable_problem(problem, "all")
