"""What `stats()` counts, as the page of tuning says: products of arrays, and not what has no layout to look up."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplay
from tensorplay.runtime.context import TuningContext

A, B = np.ones((4, 5), np.float32), np.ones((5, 6), np.float32)
C = np.ones((4, 6), np.float32)
# A number of NumPy's is none of Python's for type checkers, unless it is a float64.
HALF: Any = np.float32(0.5)

COUNTED: dict[str, Callable[[], Any]] = {
    "integers": lambda: tensorplay.mm(A.astype(int), B.astype(int)),
    "mixed types": lambda: tensorplay.mm(A, B.astype(float)),
    "negative strides": lambda: tensorplay.mm(A[::-1], B),
    "a number of Python": lambda: tensorplay.addmm(C, A, B, alpha=0.5),
    "a number of the operands' type": lambda: tensorplay.addmm(C, A, B, alpha=HALF),
}
UNCOUNTED: dict[str, Callable[[], Any]] = {
    "a list": lambda: tensorplay.mm(A.tolist(), B),
    "a vector": lambda: tensorplay.matmul(A, B[:, 0]),
    "a broadcast stack": lambda: tensorplay.matmul(A, np.ones((2, 5, 6), np.float32)),
    "an addend of another type": lambda: tensorplay.addmm(C.astype(float), A, B),
    "a factor that changes the type": lambda: tensorplay.addmm(C, A, B, alpha=np.float64(1)),
    "a bias of another type": lambda: tensorplay.linear(A, B.T, np.ones(6)),
}


def calls(context: TuningContext) -> int:
    counts = context.stats()
    return sum(counts[reason] for reason in ("replayed", "first_choice", "selected_in_process", "fallback", "untuned"))


@pytest.mark.parametrize("product", COUNTED.values(), ids=COUNTED.keys())
def test_products_of_arrays_are_counted(tuning: TuningContext, product: Callable[[], Any]) -> None:
    for _ in range(3):
        product()
    assert calls(tuning) + tuning.stats()["measured"] >= 2


@pytest.mark.parametrize("product", UNCOUNTED.values(), ids=UNCOUNTED.keys())
def test_what_has_no_layout_to_look_up_is_not(tuning: TuningContext, product: Callable[[], Any]) -> None:
    for _ in range(3):
        product()
    assert calls(tuning) + tuning.stats()["measured"] == 0
