"""The space of problems, for every test that draws from it."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tensorplay.gemm.dtype import DTYPES
from tensorplay.gemm.problem import ACTIVATIONS, ALIGNMENTS, GemmProblem

ProblemSpace = Callable[[int], SearchStrategy[GemmProblem]]


@pytest.fixture(scope="session")
def problems_up_to() -> ProblemSpace:
    """Return what makes the strategy of all problems whose sizes, strides and ordinals reach a number."""
    return _problems


@st.composite
def _problems(draw: DrawFn, largest: int) -> GemmProblem:
    sizes = st.integers(1, largest)
    counts = st.integers(0, largest)
    m, n, k, batch = draw(sizes), draw(sizes), draw(sizes), draw(st.just(1) | sizes)
    transpose_left, transpose_right = draw(st.booleans()), draw(st.booleans())
    optional_dtype = st.none() | st.sampled_from(DTYPES)

    def padded(least: int) -> int | None:
        return draw(st.none() | st.integers(least + 1, largest)) if least < largest else None

    def stride() -> int | None:
        return draw(st.none() | counts) if batch > 1 else None

    dtype = draw(st.sampled_from(DTYPES))
    others = [each for each in DTYPES if each.itemsize == dtype.itemsize == 1 and each != dtype]
    return GemmProblem(
        dtype=dtype,
        m=m,
        n=n,
        k=k,
        transpose_right=transpose_right,
        transpose_left=transpose_left,
        bias=draw(st.booleans()),
        device=draw(st.just("cpu") | counts.map(str)),
        ld_left=padded(m if transpose_left else k),
        ld_right=padded(k if transpose_right else n),
        ld_out=padded(n),
        batch=batch,
        stride_left=stride(),
        stride_right=stride(),
        stride_out=stride(),
        activation=draw(st.sampled_from(ACTIVATIONS)),
        accumulate=draw(st.booleans()),
        out_dtype=draw(optional_dtype),
        alignment=draw(st.sampled_from(ALIGNMENTS)),
        accumulation=draw(optional_dtype),
        workspace_mib=draw(st.none() | counts),
        left_dtype=draw(st.sampled_from([None, *others])),
    )
