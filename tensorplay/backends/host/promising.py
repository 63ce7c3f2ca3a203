"""Kernels of NumPy's that have won before, by the kind of product, most promising first.

The lists were made from measurements of some 150 kernels on 50 shapes, float32 and float64, on two cores. What was
gained there over `numpy.matmul` (OpenBLAS 0.3.31):

- tiny products, 1.1 to 3 times: `dot`, whose call costs less;
- one column by one row, 15 times: anything but `numpy.matmul`, which multiplies it without BLAS;
- few rows by a transposed weight, 1.2 to 2.2 times: the transposed product, in blocks of its rows;
- long sums with a small result, up to 1.5 times: so few rows or columns at a time that BLAS starts no threads;
- short sums with a large result, up to 1.5 times: blocks of columns that stay in cache;
- anything on a busy machine: one thread, which does not wait for others to be run.
"""

from tensorplay.backends.host.dtypes import is_half
from tensorplay.gemm import GemmProblem

__all__ = ["promising", "searched"]

_TINY = "dot1 threads1 dot1_packb1 dot1_rows1 packb1 dot1_swap1 dot1_packa1 packa1"
_OUTER = "threads1 dot1 rows256 cols256 outer1 dot1_rows128 threads1_rows128"
_VECTOR = "dot1 threads1 dot1_swap1 dot1_rows512_swap1 cols512 dot1_rows512 cols1024 rows1024"
_FEW_ROWS = """
    dot1_swap1 dot1_rows128_swap1 cols128 rows1 dot1_rows512_swap1 dot1_swap1_rows1 threads1 dot1 dot1_swap1_rows16
    cols512 dot1_rows256_swap1 dot1_rows32_swap1 dot1_rows1 threads1_cols128 threads1_swap1 cols32 cols2048 packb1
"""
_FEW_COLUMNS = """
    dot1 dot1_rows128 dot1_rows1024 dot1_rows64 dot1_swap1 packb1 threads1 cols16 dot1_rows2048 dot1_rows1_swap1
    cols128_swap1 cols32 dot1_rows512 dot1_packb1 threads1_rows128 packa1 cols1
"""
_LONG_SUMS = """
    dot1_swap1_rows4 cols4 cols32 dot1_rows16_swap1 threads1 dot1 dot1_rows4 dot1_swap1_rows32 cols16 dot1_rows64
    dot1_swap1 threads1_cols32 threads1_swap1_rows4 packa1 packb1 dot1_rows16
"""
_SHORT_SUMS = """
    cols128 cols1024 rows1024 threads1 rows256 dot1 cols512 packb1 cols32 threads1_cols256 threads1_rows256
    dot1_swap1 rows64 packa1
"""
_GENERAL = """
    dot1 cols256 threads1 cols128 dot1_swap1 dot1_rows256 packb1 packa1 dot1_rows128 cols64 cols512 dot1_rows512
    cols1024 dot1_rows1024 threads1_cols256 threads1_swap1 threads1_rows128 dot1_packb1 packa1_packb1
"""
_HALF = """
    upcast1 dot1_upcast1 threads1_upcast1 dot1_swap1_upcast1 upcast1_cols256 upcast1_rows256 upcast1_cols512_rows512
    dot1_upcast1_rows128 upcast1_cols128_rows128 cols128_upcast1 upcast1_cols1024 upcast1_rows1024
    dot1_rows128_swap1_upcast1 dot1_rows1_upcast1 dot1 outer1
"""
_STACK = "fold1 dot1_fold1 dot1_loop1 threads1_loop1 loop1 threads1_fold1 dot1_swap1_loop1"
_HALF_STACK = "upcast1 upcast1_fold1 dot1_upcast1_fold1 dot1_upcast1_loop1 upcast1_loop1"

_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_BLOCKED = (
    "rows{0}",
    "dot1_rows{0}",
    "threads1_rows{0}",
    "dot1_rows{0}_swap1",
    "dot1_swap1_rows{0}",
    "cols{0}",
    "threads1_cols{0}",
)

# Below, numpy.matmul itself takes microseconds, and little but the overhead of a call can be won.
_TINY_WORK = 1 << 17
_NARROW = 64


def promising(problem: GemmProblem) -> list[str]:
    """Return the options of kernels that suit the kind of product, as kernel ids spell them."""
    lists = _STACK if problem.batch > 1 else _list_for_one(problem)
    if is_half(problem.dtype):
        lists = _HALF_STACK if problem.batch > 1 else _HALF
    return lists.split()


def searched(problem: GemmProblem) -> list[str]:
    """Return the options of kernels for a wide search: blocks of every size."""
    if problem.batch > 1:
        return []
    suffix = "_upcast1" if is_half(problem.dtype) else ""
    return [text.format(size) + suffix for text in _BLOCKED for size in _BLOCKS]


def _list_for_one(problem: GemmProblem) -> str:
    m, n, k = problem.m, problem.n, problem.k
    if k == 1:
        return _OUTER
    if m * n * k <= _TINY_WORK:
        return _TINY
    if 1 in (m, n):
        return _VECTOR
    if k >= 8 * max(m, n):
        return _LONG_SUMS + _GENERAL
    if m <= _NARROW and n >= 4 * m:
        return _FEW_ROWS + _GENERAL
    if n <= _NARROW and m >= 4 * n:
        return _FEW_COLUMNS + _GENERAL
    return _SHORT_SUMS + _GENERAL if k <= _NARROW else _GENERAL
