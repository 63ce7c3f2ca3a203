"""What results should be."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tensorplay.backends.cublaslt.reference import activated, expected_result
from tensorplay.gemm import DType, GemmProblem, dtype_of_name


def named(name: str) -> DType:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return dtype


def test_gelu_is_the_tanh_approximation_that_the_library_has() -> None:
    points = np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    exact = np.array([0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in points])
    found = activated(points, "gelu")
    assert 1e-5 < np.abs(found - exact).max() < 1e-3


def test_relu_keeps_what_is_positive() -> None:
    assert activated(np.array([-1.0, 0.0, 2.0]), "relu").tolist() == [0.0, 0.0, 2.0]


def test_addend_and_bias_come_before_the_activation() -> None:
    problem = GemmProblem(
        dtype=named("float32"), m=1, n=2, k=1, device="0", bias=True, activation="relu", accumulate=True
    )
    left, right = np.array([[2.0]], np.float32), np.array([[1.0, 1.0]], np.float32)
    c, bias = np.array([[1.0, 1.0]], np.float32), np.array([0.0, -10.0], np.float32)
    found = expected_result(problem, left, right, c=c, bias=bias, alpha=3.0, beta=0.5)
    assert found.dtype == np.float64
    assert found.tolist() == [[6.5, 0.0]]


@pytest.mark.parametrize("alpha", [1.0, 2j])
def test_complex_products_stay_complex(alpha: complex) -> None:
    problem = GemmProblem(dtype=named("complex64"), m=1, n=1, k=1, device="0")
    found = expected_result(problem, np.array([[1j]], np.complex64), np.array([[1j]], np.complex64), alpha=alpha)
    assert found.tolist() == [[-1 * alpha]]


def test_a_result_of_fp8_is_no_larger_than_its_type_holds() -> None:
    problem = GemmProblem(dtype=named("float8_e4m3fn"), m=1, n=2, k=1, device="0", transpose_right=True)
    left, right = np.array([[300.0]], np.float32), np.array([[2.0, -1.0]], np.float32)
    assert expected_result(problem, left, right).tolist() == [[448.0, -300.0]]
    wide = replace(problem, out_dtype=named("bfloat16"))
    assert expected_result(wide, left, right).tolist() == [[600.0, -300.0]]
    unknown = np.array([[np.nan]], np.float32)
    assert np.isnan(expected_result(problem, unknown, right)).all()
