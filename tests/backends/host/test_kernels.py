"""Every kernel computes what numpy.matmul computes, for every layout."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.kernel import Array
from tensorplay.backends.host.layout import out_layout
from tensorplay.backends.host.operands import new_result, random_operands
from tensorplay.backends.host.reference import reference_product
from tensorplay.gemm import GemmProblem, dtype_of_word, signature_of
from tensorplay.measure.numerics import agree

BACKEND = HostBackend()
EVERYTHING = CandidateQuery(breadth="search")
WORDS = ("Float32", "Float64", "Float16", "BFloat16", "Complex64", "Complex128")

sizes = st.integers(1, 8) | st.sampled_from([15, 16, 17, 33, 64, 65, 130])
paddings = st.none() | st.integers(1, 9)


@st.composite
def problems(draw: st.DrawFn) -> GemmProblem:
    plain = GemmProblem(
        dtype=dtype_of_word(draw(st.sampled_from(WORDS))),
        m=draw(sizes),
        n=draw(sizes),
        k=draw(sizes),
        transpose_left=draw(st.booleans()),
        transpose_right=draw(st.booleans()),
        alignment=draw(st.sampled_from([16, 16, 16, 8, 4, 2, 1])),
    )
    left, right, out = draw(paddings), draw(paddings), draw(paddings)
    padded = replace(
        plain,
        ld_left=left and plain.left_columns + left,
        ld_right=right and plain.right_columns + right,
        ld_out=out and plain.n + out,
    )
    if draw(st.integers(0, 3)) > 0:
        return padded
    shared = st.sampled_from([None, None, 0])
    return replace(padded, batch=draw(st.integers(2, 4)), stride_left=draw(shared), stride_right=draw(shared))


def every_plan(problem: GemmProblem) -> list[Plan]:
    return [BACKEND.first_choice(problem), *BACKEND.candidates(problem, EVERYTHING)]


@settings(max_examples=60, deadline=None)
@given(problem=problems(), seed=st.integers(0, 100))
def test_every_kernel_agrees_with_the_reference_for_every_layout(problem: GemmProblem, seed: int) -> None:
    operands = random_operands(problem, seed)
    exact = reference_product(operands.left, operands.right)
    wide = np.complex128 if problem.dtype.is_complex else np.float64
    for plan in every_plan(problem):
        for out in (None, new_result(problem)):
            result = plan.run(operands.left, operands.right, out)
            assert out is None or result is out
            assert out is not None or result.flags.c_contiguous
            assert result.dtype == (np.matmul(operands.left, operands.right).dtype if out is None else out.dtype)
            found = agree(result.astype(wide), exact, lambda: exact, dtype=problem.dtype, k=problem.k)
            assert found.ok, f"{plan.kernel} of {signature_of(problem)}: {found.reason}"


def between_rows(problem: GemmProblem, out: Array) -> Array:
    """Return what lies in the memory of a padded result, but is none of its elements."""
    elements = out_layout(problem).elements
    is_inside = np.zeros(elements, bool)
    as_strided(is_inside, out.shape, [step // out.itemsize for step in out.strides])[...] = True
    return as_strided(out, (elements,), (out.itemsize,))[~is_inside]


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_no_kernel_writes_between_the_rows_of_the_result_or_to_its_operands(problem: GemmProblem) -> None:
    operands = random_operands(problem, 1)
    before = operands.left.tobytes(), operands.right.tobytes()
    for plan in every_plan(problem):
        out = new_result(problem)
        plan.run(operands.left, operands.right, out)
        assert np.isnan(between_rows(problem, out)).all(), plan.kernel
        assert (operands.left.tobytes(), operands.right.tobytes()) == before, plan.kernel


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_every_kernel_rebuilds_from_its_id_and_computes_the_same_bits(problem: GemmProblem) -> None:
    operands = random_operands(problem, 2)
    for plan in every_plan(problem):
        rebuilt = BACKEND.rebuild(problem, plan.kernel)
        assert rebuilt.kernel == plan.kernel
        one, other = (each.run(operands.left, operands.right, new_result(problem)) for each in (plan, rebuilt))
        assert one.tobytes() == other.tobytes(), plan.kernel
