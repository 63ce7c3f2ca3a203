"""What type checkers are told: whoever multiplies arrays of a library gets its own type back.

mypy reads these functions too; `assert_type` does nothing when they run.
"""

from typing import Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay
from tensorplay.cuda import DeviceArray, scaled_mm
from tensorplay.errors import OperandError

pytestmark = pytest.mark.usefixtures("context")


class Tensor:
    """A tensor as torch declares it, in host memory; it may have a subclass, as a parameter is one."""

    def __init__(self, host: NDArray[Any]) -> None:
        self.host = host

    def __dlpack__(self, *, stream: int = -1, max_version: tuple[int, int] | None = None) -> Any:
        return self.host.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.host


class Parameter(Tensor):
    """As `torch.nn.Parameter`."""


ONES = np.ones((2, 2), np.float32)


def of_tensors(x: Tensor, weight: Parameter) -> None:
    assert_type(tensorplay.mm(x, x), Tensor)
    assert_type(tensorplay.mm(x, weight, out=x), Tensor)
    assert_type(tensorplay.bmm(x, x), Tensor)
    assert_type(tensorplay.matmul(x, weight), Tensor)
    assert_type(tensorplay.linear(x, weight, weight, activation="gelu"), Tensor)
    assert_type(tensorplay.linear(x, weight), Tensor)
    assert_type(tensorplay.addmm(x, x, weight, alpha=0.5, activation="relu", out=x), Tensor)
    assert_type(scaled_mm(x, weight, scale_a=x, scale_b=0.5, out_dtype="float32"), Tensor)


def of_our_own(array: DeviceArray) -> None:
    assert_type(tensorplay.mm(array, array), DeviceArray)


def of_arrays(array: NDArray[np.float32], other: NDArray[np.float64], bias: NDArray[np.float32]) -> None:
    assert_type(tensorplay.mm(array, array, out=array), NDArray[Any])
    assert_type(tensorplay.linear(array, array, bias), NDArray[Any])
    assert_type(tensorplay.mm(array, other), NDArray[Any])
    assert_type(tensorplay.mm([[1.0]], [[2.0]]), NDArray[Any])
    assert_type(tensorplay.addmm([1.0], [[1.0, 2.0]], [[1.0], [2.0]]), NDArray[Any])


def of_untyped_libraries(array: Any) -> None:
    assert_type(tensorplay.mm(array, array), Any)


def test_what_is_promised_runs() -> None:
    of_arrays(ONES, ONES.astype(np.float64), np.ones(2, np.float32))
    of_untyped_libraries(ONES)


def test_arrays_of_the_host_that_only_look_like_tensors_are_numpy_s() -> None:
    tensor = Tensor(ONES)
    np.testing.assert_array_equal(np.asarray(tensorplay.mm(tensor, tensor)), ONES @ ONES)
    with pytest.raises(OperandError, match="on the host"):
        scaled_mm(tensor, tensor)
