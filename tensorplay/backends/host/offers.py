"""Which kernels to try for a problem, most promising first: NumPy's, other thread counts, other libraries."""

from collections.abc import Iterator

from tensorplay.backends.host.dtypes import BLAS_LETTERS
from tensorplay.backends.host.library import numpy_blas, thread_limit
from tensorplay.backends.host.mkl_kernels import has_mkl
from tensorplay.backends.host.promising import promising, searched
from tensorplay.backends.host.scipy_kernels import has_scipy
from tensorplay.gemm import GemmProblem, HostKernelId, parse_kernel_id

__all__ = ["MOST_OFFERED", "is_worth_trying", "offers", "thread_counts"]

MOST_OFFERED = {"heuristic": 8, "wide": 24, "search": 200}
"""How many candidates a breadth gives at most."""

# So many of NumPy's own come before those of other libraries.
_LEADING = 4
# A block is one call: it should be worth a microsecond or two, and not too many of them be needed.
_LEAST_BLOCK_WORK, _MOST_BLOCKS = 1 << 13, 256


def offers(problem: GemmProblem, breadth: str) -> Iterator[HostKernelId]:
    """Yield kernel ids to try, each once; what turns out not to be available is for the caller to pass over."""
    is_search = breadth == "search"
    own = [_of_numpy(options) for options in promising(problem)]
    if is_search:
        own.extend(_of_numpy(options) for options in searched(problem))
    others = list(_by_threads(problem, is_search=is_search))
    for kernel in dict.fromkeys([*own[:_LEADING], *others, *own[_LEADING:]]):
        if is_worth_trying(kernel, problem):
            yield kernel


def is_worth_trying(kernel: HostKernelId, problem: GemmProblem) -> bool:
    """Return whether a kernel is another than the first choice, with blocks neither too small nor too many.

    And it must need no second pool of threads for what is the same library.
    """
    return _is_sensible(kernel, problem) and not (_is_numpys_own_count(kernel) or _is_second_pool(kernel))


def _of_numpy(options: str) -> HostKernelId:
    kernel = parse_kernel_id(f"host_numpy_{options}")
    if not isinstance(kernel, HostKernelId):
        raise TypeError(f"{options} are no options of a host kernel")
    return kernel


def _by_threads(problem: GemmProblem, *, is_search: bool) -> Iterator[HostKernelId]:
    """Yield what multiplies single products by another library, or by another number of threads."""
    if problem.batch > 1 or problem.dtype.name not in BLAS_LETTERS:
        return
    counts = thread_counts(is_search=is_search)
    by_source = {"numpy": counts}
    if has_mkl():
        by_source["mkl"] = counts
    if has_scipy():
        yield HostKernelId("scipy")
        # Each count is a library in memory, which is seldom worth it for another release of the same one.
        by_source["scipy"] = counts if is_search else counts[:2]
    for count in counts:
        for source in ("mkl", "numpy", "scipy"):
            if count in by_source.get(source, ()):
                yield HostKernelId(source, (("threads", count),))


def thread_counts(*, is_search: bool) -> list[int]:
    """Return all that may be used, one, and powers of two between, the larger first; in a search those between."""
    limit = thread_limit()
    powers = [1 << power for power in range(limit.bit_length()) if 1 << power < limit]
    between = [3 * power // 2 for power in powers if power > 1 and 3 * power // 2 < limit] if is_search else []
    return list(dict.fromkeys([limit, 1, *reversed(powers), *between]))


def _is_numpys_own_count(kernel: HostKernelId) -> bool:
    """Return whether it is NumPy's BLAS with NumPy's thread count: that is what runs without it, for less."""
    return kernel.source == "numpy" and dict(kernel.options).get("threads") == numpy_blas().threads


def _is_second_pool(kernel: HostKernelId) -> bool:
    """Return whether it is SciPy's OpenBLAS on several threads beside those of NumPy's.

    Threads that wait for work keep their processors busy, so each pool takes them from the other: a product took twice
    as long in one process, NumPy's twice as long in the next. And another release of the same library gains little.
    """
    own = numpy_blas()
    threads = dict(kernel.options).get("threads", thread_limit())
    return kernel.source == "scipy" and own.name == "openblas" and min(threads, own.threads) > 1


def _is_sensible(kernel: HostKernelId, problem: GemmProblem) -> bool:
    """Return whether blocks are neither too small nor too many."""
    m, n = problem.m, problem.n
    for name, value in reversed(kernel.options):
        if name == "swap":
            m, n = n, m
        elif name in {"rows", "cols"}:
            length, other = (m, n) if name == "rows" else (n, m)
            if length > value * _MOST_BLOCKS or value * other * problem.k < _LEAST_BLOCK_WORK:
                return False
            m, n = (value, n) if name == "rows" else (m, value)
    return True
