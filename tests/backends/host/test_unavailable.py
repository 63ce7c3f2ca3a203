"""What this build or this problem cannot run is refused with a reason that a person can act on."""

import re
import subprocess
import sys

import pytest

from tensorplay.backends.host import mkl_kernels, scipy_kernels
from tensorplay.backends.host.backend import HostBackend
from tensorplay.backends.host.library import thread_limit
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_word

FLOAT32, FLOAT64, FLOAT16 = dtype_of_word("Float32"), dtype_of_word("Float64"), dtype_of_word("Float16")
PLAIN = GemmProblem(dtype=FLOAT32, m=16, n=20, k=30)
PADDED = GemmProblem(dtype=FLOAT32, m=16, n=20, k=30, ld_out=24)
HALF = GemmProblem(dtype=FLOAT16, m=16, n=20, k=30)
STACK = GemmProblem(dtype=FLOAT32, m=16, n=20, k=30, batch=2)
MISALIGNED = GemmProblem(dtype=FLOAT64, m=16, n=20, k=30, alignment=4)
LONG = GemmProblem(dtype=FLOAT32, m=10**9, n=20, k=30)
LARGE = GemmProblem(dtype=FLOAT32, m=300, n=300, k=300)
NO_SCRATCH = GemmProblem(dtype=FLOAT32, m=16, n=20, k=30, workspace_mib=0)

REASONS = [
    ("host_numpy_rows256", PLAIN, "is for row blocks of 256, the problem has 16 rows"),
    ("host_numpy_rows16", PLAIN, "is for row blocks of 16, the problem has 16 rows"),
    ("host_numpy_cols20", PLAIN, "is for column blocks of 20, the problem has 20 columns"),
    ("host_numpy_rows0", PLAIN, "is for row blocks of 0"),
    ("host_numpy_rows1", LONG, "more than 4096 blocks"),
    ("host_numpy_outer1", PLAIN, "outer is for k = 1, the problem has k = 30"),
    ("host_numpy_dot1", PADDED, "dot writes dense results, the problem's is padded"),
    ("host_numpy_cols5_dot1", PLAIN, "option dot is unknown, or does not stand first"),
    ("host_numpy_dot1_cols5", PLAIN, "dot writes dense results"),
    ("host_numpy_dot1", STACK, "dot multiplies one pair, the problem has 2"),
    ("host_numpy_dot1", MISALIGNED, "needs operands aligned to 8 bytes, the problem's are to 4"),
    ("host_numpy_threads1", MISALIGNED, "needs operands aligned to 8 bytes, the problem's are to 4"),
    ("host_numpy_threads1", HALF, "multiplies no float16"),
    ("host_numpy_threads1", STACK, "multiplies one pair, the problem has 2"),
    ("host_numpy_threads0", PLAIN, "asks for 0 threads, at least 1 is needed"),
    ("host_numpy_threads9999", PLAIN, f"asks for 9999 threads, this process may use {thread_limit()}"),
    ("host_numpy_packa1", PLAIN, "packa is for a transposed or padded left operand"),
    ("host_numpy_packb1", PLAIN, "packb is for a transposed or padded right operand"),
    ("host_numpy_upcast1", PLAIN, "upcast is for float16 and bfloat16, not float32"),
    ("host_numpy_loop1", PLAIN, "loop is for stacks"),
    ("host_numpy_fold1", PLAIN, "fold is for stacks"),
    ("host_numpy_fold1", STACK, "fold is for a shared right operand"),
    ("host_numpy_swap1", STACK, "swap multiplies one pair, the problem has 2"),
    ("host_numpy_swap2", PLAIN, "option swap is 1 or left out, not 2"),
    ("host_numpy_dot2", PLAIN, "option dot is 1 or left out, not 2"),
    ("host_numpy_turbo1", PLAIN, "option turbo of numpy is unknown"),
    ("host_numpy_threads1_turbo1", PLAIN, "option turbo is unknown, or does not stand first"),
    ("host_mkl_dot1", PLAIN, "option dot of mkl is unknown"),
    ("host_mkl", PLAIN, "needs a thread count"),
    ("host_blis", PLAIN, "source blis is unknown; known: numpy, scipy, mkl"),
    ("host_blis_threads1", PLAIN, "source blis is unknown; known: numpy, scipy, mkl"),
    ("host_numpy_swap1", NO_SCRATCH, "of scratch memory, the problem allows 0 MiB"),
    ("lt_id1_tile1_stages1_splitk1_red0_swizzle0_custom0_inner0_cluster1", PLAIN, "runs on a GPU, this is the host"),
    ("host_numpy_rows", PLAIN, "is no kernel id"),
    ("", PLAIN, "is no kernel id"),
]


@pytest.mark.parametrize(("kernel", "problem", "reason"), REASONS, ids=[kernel for kernel, _, _ in REASONS])
def test_a_kernel_that_cannot_run_is_refused_with_the_reason(kernel: str, problem: GemmProblem, reason: str) -> None:
    with pytest.raises(KernelUnavailableError, match=re.escape(reason)):
        HostBackend().rebuild(problem, kernel)


def test_default_names_the_first_choice() -> None:
    assert HostBackend().rebuild(PLAIN, "Default").kernel == HostBackend().first_choice(PLAIN).kernel


def test_scipy_is_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scipy_kernels, "find_spec", lambda _: None)
    scipy_kernels._scipy_blas.cache_clear()
    for kernel in ("host_scipy", "host_scipy_threads1"):
        with pytest.raises(KernelUnavailableError, match="SciPy is not installed"):
            HostBackend().rebuild(PLAIN, kernel)


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (PADDED, "copies padded operands"),
        (HALF, "multiplies no float16"),
        (STACK, "multiplies one pair"),
        (MISALIGNED, "aligned to 8 bytes"),
        (GemmProblem(dtype=FLOAT32, m=1, n=1, k=2**31), "sizes up to 2147483647"),
    ],
)
def test_scipy_refuses_what_its_wrappers_would_copy(problem: GemmProblem, reason: str) -> None:
    pytest.importorskip("scipy")
    with pytest.raises(KernelUnavailableError, match=reason):
        HostBackend().rebuild(problem, "host_scipy")


def test_scipy_refuses_what_would_start_threads_beside_those_of_numpy() -> None:
    pytest.importorskip("scipy")
    blas = scipy_kernels._scipy_blas()
    if blas is None or blas.threads == 1 or scipy_kernels._is_numpys(blas):
        pytest.skip("SciPy's BLAS has no threads of its own here")
    assert HostBackend().rebuild(PLAIN, "host_scipy").kernel == "host_scipy"
    with pytest.raises(KernelUnavailableError, match="would start threads beside those of NumPy's; use a thread count"):
        HostBackend().rebuild(LARGE, "host_scipy")


def test_mkl_is_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mkl_kernels, "_mkl_file", lambda: None)
    mkl_kernels._mkl.cache_clear()
    assert not mkl_kernels.has_mkl()
    with pytest.raises(KernelUnavailableError, match="MKL is not installed; the package is called mkl"):
        HostBackend().rebuild(PLAIN, "host_mkl_threads1")


def test_bfloat16_is_not_tuned_without_ml_dtypes() -> None:
    code = """
import sys
sys.modules["ml_dtypes"] = None
import importlib.util
importlib.util.find_spec = lambda name, package=None, find=importlib.util.find_spec: (
    None if name == "ml_dtypes" else find(name, package))
from tensorplay.backends.host.backend import HostBackend
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_word
problem = GemmProblem(dtype=dtype_of_word("BFloat16"), m=3, n=4, k=5, bias=True)
backend = HostBackend()
assert not backend.is_tunable(problem, "all")
assert backend.first_choice(problem).kernel == "host_numpy"
assert not list(backend.candidates(problem, __import__("tensorplay.backends.base").backends.base.CandidateQuery()))
try:
    backend.rebuild(problem, "host_numpy_upcast1")
except KernelUnavailableError as error:
    assert "ml_dtypes, which is not installed" in str(error), error
else:
    raise SystemExit("rebuilt")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
