from collections.abc import Sequence

import pytest

from tensorplay.backends.base import Backend
from tensorplay.backends.host.backend import HostBackend
from tensorplay.gemm import GemmProblem, dtype_of_word
from tensorplay.testing.backend_suite import BackendSuite

FLOAT32, FLOAT64 = dtype_of_word("Float32"), dtype_of_word("Float64")
FLOAT16, BFLOAT16 = dtype_of_word("Float16"), dtype_of_word("BFloat16")
COMPLEX64, COMPLEX128 = dtype_of_word("Complex64"), dtype_of_word("Complex128")
SMALL = GemmProblem(dtype=FLOAT32, m=65, n=33, k=70)


class TestHostBackend(BackendSuite):
    construction = "from tensorplay.backends.host.backend import HostBackend; HostBackend()"
    heavy = BackendSuite.heavy | {"threadpoolctl"}

    def backend(self) -> Backend:
        return HostBackend()

    def problems(self) -> Sequence[GemmProblem]:
        return [
            SMALL,
            GemmProblem(dtype=FLOAT32, m=4, n=300, k=130, transpose_right=True),
            GemmProblem(dtype=FLOAT64, m=129, n=7, k=50, transpose_left=True, ld_left=135, ld_out=11),
            GemmProblem(dtype=FLOAT64, m=8, n=9, k=600, ld_right=12, alignment=8),
            GemmProblem(dtype=FLOAT32, m=1, n=200, k=100, transpose_right=True),
            GemmProblem(dtype=FLOAT32, m=70, n=80, k=1),
            GemmProblem(dtype=FLOAT16, m=40, n=30, k=20, bias=True),
            GemmProblem(dtype=BFLOAT16, m=20, n=30, k=40, transpose_right=True),
            GemmProblem(dtype=COMPLEX64, m=30, n=40, k=20, transpose_left=True),
            GemmProblem(dtype=COMPLEX128, m=20, n=10, k=30),
            GemmProblem(dtype=FLOAT32, m=20, n=30, k=10, batch=3),
            GemmProblem(dtype=FLOAT32, m=20, n=30, k=10, batch=5, stride_right=0),
        ]

    def untunable_problems(self) -> Sequence[GemmProblem]:
        return [
            GemmProblem(dtype=dtype_of_word("Tf32"), m=4, n=4, k=4),
            GemmProblem(dtype=dtype_of_word("Float8E4M3"), m=4, n=4, k=4),
            GemmProblem(dtype=FLOAT32, m=4, n=4, k=4, device="0"),
            GemmProblem(dtype=FLOAT32, m=4, n=4, k=4, activation="relu"),
            GemmProblem(dtype=FLOAT32, m=4, n=4, k=4, out_dtype=FLOAT16),
            GemmProblem(dtype=FLOAT32, m=4, n=4, k=4, accumulation=FLOAT64),
            # Results that lie on top of each other.
            GemmProblem(dtype=FLOAT32, m=4, n=4, k=4, batch=2, stride_out=0),
            GemmProblem(dtype=FLOAT32, m=4, n=4, k=4, batch=2, stride_out=8),
        ]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
@pytest.mark.parametrize(
    "kind",
    [{}, {"transpose_left": True}, {"transpose_right": True, "ld_right": 9}, {"bias": True}, {"accumulate": True}],
)
def test_every_single_product_of_float32_and_float64_is_planned(dtype, kind) -> None:  # type: ignore[no-untyped-def]
    assert HostBackend().is_tunable(GemmProblem(dtype=dtype, m=3, n=4, k=5, **kind), "plan")
