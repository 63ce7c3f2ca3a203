"""Where scratch operands lie: at addresses such as programs' operands have, apart from each other."""

from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.scratch import GUARD_BYTES, _offsets, _parts, operand_bytes, set_bytes
from tensorplay.gemm import GemmProblem, dtype_of_name

SIZES = st.integers(1, 3000)
DTYPES = st.sampled_from(["float32", "float64", "float16", "bfloat16", "complex64", "float8_e4m3fn"])


def posed(name: str, m: int, n: int, k: int, *, bias: bool, accumulate: bool) -> GemmProblem:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0", bias=bias, accumulate=accumulate)


PLACES = st.integers(0, 15)


@given(DTYPES, SIZES, SIZES, SIZES, st.booleans(), st.booleans(), PLACES)
def test_operands_begin_at_pages_and_are_kept_apart_by_guards(
    name: str, m: int, n: int, k: int, bias: bool, accumulate: bool, place: int
) -> None:
    problem = posed(name, m, n, k, bias=bias, accumulate=accumulate)
    parts, step = _parts(problem), set_bytes(problem)
    offsets, last = _offsets(parts, place)
    end = -GUARD_BYTES
    for part in parts:
        begin = offsets[part.name]
        assert begin % part.page_bytes == 0
        assert begin >= end + GUARD_BYTES
        # An operand of a lesser alignment begins up to 15 bytes later.
        end = begin + 15 + part.nbytes
    assert step >= last >= end + GUARD_BYTES
    assert all(step % part.page_bytes == 0 for part in parts)


def test_large_operands_begin_as_a_framework_s_do() -> None:
    parts = _parts(posed("float32", 256, 64, 1024, bias=False, accumulate=False))
    for place in range(16):
        offsets, _ = _offsets(parts, place)
        assert {offset % (1 << 16) for offset in offsets.values()} == {0}


def test_operands_lie_to_each_other_in_many_ways_and_alike_in_each_process() -> None:
    parts = _parts(posed("float16", 512, 2304, 768, bias=True, accumulate=False))
    apart = {offsets["out"] - offsets["left"] for offsets, _ in (_offsets(parts, place) for place in range(16))}
    assert len(apart) > 4
    assert _offsets(parts, 5) == _offsets(parts, 5)
    assert _offsets(parts, 0)[0]["left"] == 0


@given(DTYPES, SIZES, SIZES, SIZES)
def test_what_a_product_touches_is_less_than_what_its_set_takes(name: str, m: int, n: int, k: int) -> None:
    problem = posed(name, m, n, k, bias=True, accumulate=False)
    item, out = problem.dtype.itemsize, problem.result_type.itemsize
    assert operand_bytes(problem) >= (m * k + k * n) * item + m * n * out
    assert operand_bytes(problem) < set_bytes(problem)
