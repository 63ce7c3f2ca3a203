"""Alpha, beta and where the addend lies."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.device import current, device
from tensorplay.backends.cublaslt.host_copy import from_device
from tensorplay.backends.cublaslt.reference import expected_result
from tensorplay.backends.cublaslt.scratch import Scratch
from tensorplay.backends.cublaslt.stream import private_stream
from tensorplay.gemm import GemmProblem, dtype_of_name


def posed(name: str) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return GemmProblem(dtype=dtype, m=33, n=40, k=50, device="0", accumulate=True)


@pytest.fixture
def scratch(request: pytest.FixtureRequest) -> Iterator[Scratch]:
    with current(0):
        made = Scratch(posed(request.param), 0, 1, private_stream(0))
        yield made
        made.free()


def fetched(scratch: Scratch, name: str) -> NDArray[Any]:
    return from_device(*scratch.part(name), private_stream(0))


@pytest.mark.parametrize("scratch", ["float32", "float64", "bfloat16", "complex64"], indirect=True)
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (1.0, 1.0), (0.5, 0.0), (-2.0, 0.25), (0.0, 1.0), (0.0, 0.0)])
@pytest.mark.parametrize("fixed", [False, True])
def test_alpha_and_beta_scale_what_they_should(
    backend: CublasLtBackend, scratch: Scratch, alpha: float, beta: float, fixed: bool
) -> None:
    problem = scratch.problem
    plan = backend.fixed_dispatch(problem) if fixed else backend.first_choice(problem)
    operands = scratch.sets[0]
    scratch.spoil_output()
    with current(0):
        plan.run(operands.left, operands.right, operands.out, operands.c, 0, alpha, beta, private_stream(0))
        left, right, c = (fetched(scratch, name) for name in ("left", "right", "c"))
        expected = expected_result(problem, left, right, c=c if beta else None, alpha=alpha, beta=beta)
        found = fetched(scratch, "out")
    tolerance = 0.1 if problem.dtype.name == "bfloat16" else 1e-4
    np.testing.assert_allclose(found, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("scratch", ["float32", "complex64"], indirect=True)
@pytest.mark.parametrize("fixed", [False, True])
def test_the_result_may_be_added_to_itself(backend: CublasLtBackend, scratch: Scratch, fixed: bool) -> None:
    problem, operands = scratch.problem, scratch.sets[0]
    plan = backend.fixed_dispatch(problem) if fixed else backend.first_choice(problem)
    with current(0):
        before = fetched(scratch, "c")
        plan.run(operands.left, operands.right, operands.c, 0, 0, 1.0, 2.0, private_stream(0))
        expected = expected_result(problem, fetched(scratch, "left"), fetched(scratch, "right"), c=before, beta=2.0)
        np.testing.assert_allclose(fetched(scratch, "c"), expected, atol=1e-4)


@pytest.mark.parametrize("scratch", ["complex64"], indirect=True)
def test_complex_scalars_keep_their_imaginary_part(backend: CublasLtBackend, scratch: Scratch) -> None:
    problem, operands = scratch.problem, scratch.sets[0]
    for plan in (backend.first_choice(problem), backend.fixed_dispatch(problem)):
        with current(0):
            plan.run(operands.left, operands.right, operands.out, operands.c, 0, 1j, 2 - 1j, private_stream(0))
            left, right, c = (fetched(scratch, name) for name in ("left", "right", "c"))
            expected = expected_result(problem, left, right, c=c, alpha=1j, beta=2 - 1j)
            np.testing.assert_allclose(fetched(scratch, "out"), expected, atol=1e-4)


@pytest.mark.parametrize("scratch", ["float32"], indirect=True)
def test_the_bias_of_each_call_is_the_one_added(backend: CublasLtBackend, scratch: Scratch) -> None:
    problem, operands = replace(scratch.problem, bias=True, accumulate=False), scratch.sets[0]
    plan = backend.first_choice(problem)
    with current(0):
        results = []
        # Any n floats may serve as a bias: two rows of the addend do.
        for bias in (operands.c, operands.c + 4 * problem.n, operands.c):
            plan.run(operands.left, operands.right, operands.out, 0, bias, 1.0, 0.0, private_stream(0))
            results.append(fetched(scratch, "out"))
        c = fetched(scratch, "c")
    np.testing.assert_allclose(results[1] - results[0], np.broadcast_to(c[1] - c[0], results[0].shape), atol=1e-4)
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("scratch", ["float32", "bfloat16"], indirect=True)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_what_is_scaled_and_added_is_activated_last(
    backend: CublasLtBackend, scratch: Scratch, activation: str
) -> None:
    problem, operands = replace(scratch.problem, activation=activation), scratch.sets[0]
    plan = backend.first_choice(problem)
    scratch.spoil_output()
    with current(0):
        plan.run(operands.left, operands.right, operands.out, operands.c, 0, -0.5, 2.0, private_stream(0))
        left, right, c = (fetched(scratch, name) for name in ("left", "right", "c"))
        expected = expected_result(problem, left, right, c=c, alpha=-0.5, beta=2.0)
        found = fetched(scratch, "out")
    tolerance = 0.1 if problem.dtype.name == "bfloat16" else 1e-4
    np.testing.assert_allclose(found, expected, atol=tolerance, rtol=tolerance)


def float8(out: str, **further: Any) -> GemmProblem:
    """Return a product of FP8 with a result of another type."""
    e4m3, stored = dtype_of_name("float8_e4m3fn"), dtype_of_name(out)
    assert e4m3 is not None
    plain = GemmProblem(dtype=e4m3, m=33, n=48, k=64, device="0", transpose_right=True)
    return replace(plain, out_dtype=None if out == e4m3.name else stored, **further)


@pytest.mark.parametrize("out", ["bfloat16", "float32", "float8_e4m3fn"])
@pytest.mark.parametrize("bias", [False, True])
def test_each_call_has_the_scales_that_it_names_and_no_others(
    backend: CublasLtBackend, torch: Any, out: str, bias: bool
) -> None:
    if device(0).capability < (8, 9):
        pytest.skip("this device has no FP8")
    problem = float8(out, bias=bias)
    # The library reads scales at multiples of 16 bytes only.
    numbers = torch.tensor([0.5, 0, 0, 0, -2.0, 0, 0, 0, 4.0], device="cuda")
    left_scale, right_scale, out_scale = (numbers.data_ptr() + 16 * place for place in range(3))
    torch.cuda.synchronize()
    plan = backend.first_choice(problem)
    with current(0):
        scratch = Scratch(problem, 0, 1, private_stream(0))
        operands = scratch.sets[0]
        left, right = (fetched(scratch, name) for name in ("left", "right"))
        row = fetched(scratch, "bias")[0] if bias else None
        for scales, factor, last in (
            ((0, 0, 0), 1.0, 1.0),
            ((left_scale, 0, 0), 0.5, 1.0),
            ((left_scale, right_scale, 0), -1.0, 1.0),
            ((0, right_scale, out_scale), -2.0, 4.0),
            ((0, 0, 0), 1.0, 1.0),
        ):
            scratch.spoil_output()
            # An eighth of it all, so that no result is beyond the largest number of FP8.
            plan.run(*operands[:3], 0, operands.bias, 0.125, 0.0, private_stream(0), *scales)
            expected = expected_result(problem, left, right, alpha=0.125 * factor, bias=row)
            expected = expected * (last if out == "float8_e4m3fn" else 1.0)
            roundoff = {"bfloat16": 2.0**-8, "float32": 1e-4}.get(out, 2.0**-4)
            np.testing.assert_allclose(fetched(scratch, "out"), np.clip(expected, -448, 448), rtol=roundoff, atol=0.05)
        scratch.free()
