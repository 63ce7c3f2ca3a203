"""The page for people with a GPU says what the code does."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from tensorplay.backends.cublaslt import pointer_arrays, validators
from tensorplay.backends.cublaslt.families import is_tunable_problem
from tensorplay.backends.cublaslt.grouped_limits import LEAST_PRODUCTS
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES
from tensorplay.gemm import GemmProblem, dtype_of_name

Docs = Callable[[str], str]
Rows = Callable[..., list[list[str]]]

FAMILIES: dict[str, list[dict[str, Any]]] = {
    "float32, TF32, float64": [{"dtype": name} for name in ("float32", "tf32", "float64")],
    "Every type but complex and FP8, with a bias": [
        {"dtype": name, "bias": True} for name in ("float32", "tf32", "float64", "float16", "bfloat16")
    ],
    "float16, bfloat16 without a bias": [{"dtype": name} for name in ("float16", "bfloat16")],
    "Stacks": [{"dtype": name, "batch": 3} for name in ("float32", "float16")],
    "complex64, complex128": [{"dtype": name} for name in ("complex64", "complex128")],
    "FP8": [{"dtype": "float8_e4m3fn", "transpose_right": True}],
    "With an activation": [{"dtype": name, "activation": "relu", "bias": True} for name in ("float32", "bfloat16")],
}


def test_the_families_are_those_that_are_tuned(docs: Docs, rows: Rows) -> None:
    head = ("Product", "By default", "With `TP_TUNABLEOP_FAMILIES=all`")
    table = {row[0]: row[1:] for row in rows(docs("cuda.md"), *head)}
    assert len(table) == len(FAMILIES) + 1, "and grouped products, which are no family"
    for name, problems in FAMILIES.items():
        (said,) = (words for product, words in table.items() if product.startswith(name))
        for fields in problems:
            problem = GemmProblem(**fields | {"dtype": dtype_of_name(fields["dtype"])}, m=16, n=16, k=16, device="0")
            found = [is_tunable_problem(problem, families) for families in ("plan", "all")]
            assert found == [word == "tuned" for word in said], (name, problem)


def test_the_numbers_of_groups_and_memory_are_those_of_the_code(docs: Docs) -> None:
    page = docs("cuda.md")
    assert f"Groups of at least {LEAST_PRODUCTS} products" in page
    kib = pointer_arrays.MOST_ADDRESSES * 8 >> 10
    assert f"{kib} KiB for each of the last {pointer_arrays._MOST_STREAMS} streams" in page
    assert f"{DEFAULT_BYTES >> 20} MiB for each device" in page


def test_every_validator_is_listed(docs: Docs, rows: Rows) -> None:
    names = re.findall(r'Validator\("(\w+)"', inspect.getsource(validators))
    listed = [row[0].strip("`") for row in rows(docs("cuda.md"), "Validator", "Value")]
    assert listed == ["TP_TUNABLEOP_FORMAT", *names]


@pytest.mark.parametrize("needed", ["torch", "cupy", "jax", "numba", "cuda"])
def test_there_is_an_example_for_every_library(docs: Docs, needed: str) -> None:
    assert f"<!-- needs: {needed} -->\n```python\n" in docs("cuda.md")
