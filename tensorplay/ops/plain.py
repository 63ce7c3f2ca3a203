"""A product that NumPy does as it always does, with errors that name what does not fit."""

from typing import Any

import numpy as np

from tensorplay.ops.shapes import check_matrices, check_out

__all__ = ["numpy_mm"]


def numpy_mm(a: Any, b: Any, out: Any) -> Any:
    """Multiply two matrices of the host, of any type that NumPy takes."""
    check_out("mm", out, check_matrices("mm", np.shape(a), np.shape(b)))
    return np.matmul(a, b, out=out)
