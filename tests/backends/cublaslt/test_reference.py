"""What results should be."""

import math

import numpy as np
import pytest

from tensorplay.backends.cublaslt.reference import activated, expected_result
from tensorplay.gemm import GemmProblem, dtype_of_name


def test_gelu_is_the_tanh_approximation_that_the_library_has() -> None:
    points = np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    exact = np.array([0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in points])
    found = activated(points, "gelu")
    assert 1e-5 < np.abs(found - exact).max() < 1e-3


def test_relu_keeps_what_is_positive() -> None:
    assert activated(np.array([-1.0, 0.0, 2.0]), "relu").tolist() == [0.0, 0.0, 2.0]


def test_addend_and_bias_come_before_the_activation() -> None:
    dtype = dtype_of_name("float32")
    assert dtype is not None
    problem = GemmProblem(dtype=dtype, m=1, n=2, k=1, device="0", bias=True, activation="relu", accumulate=True)
    left, right = np.array([[2.0]], np.float32), np.array([[1.0, 1.0]], np.float32)
    c, bias = np.array([[1.0, 1.0]], np.float32), np.array([0.0, -10.0], np.float32)
    found = expected_result(problem, left, right, c=c, bias=bias, alpha=3.0, beta=0.5)
    assert found.dtype == np.float64
    assert found.tolist() == [[6.5, 0.0]]


@pytest.mark.parametrize("alpha", [1.0, 2j])
def test_complex_products_stay_complex(alpha: complex) -> None:
    dtype = dtype_of_name("complex64")
    assert dtype is not None
    problem = GemmProblem(dtype=dtype, m=1, n=1, k=1, device="0")
    found = expected_result(problem, np.array([[1j]], np.complex64), np.array([[1j]], np.complex64), alpha=alpha)
    assert found.tolist() == [[-1 * alpha]]
