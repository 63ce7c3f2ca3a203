"""Attribute sizes and descriptors against the real cuBLASLt, which needs no device for them.

Its bindings ask the driver for a version first, so a driver that answers only that is built and put in its place.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

DRIVER = "int cuDriverGetVersion(int *version) { *version = 13000; return 0; }\n"

CHECK = """
import gc
from ctypes import addressof, c_uint64
from dataclasses import replace

from tensorplay.backends.cublaslt import attributes, descriptors, library
from tensorplay.backends.cublaslt.algorithm import read_kernel_id
from tensorplay.backends.cublaslt.attributes import AlgorithmAttribute, LayoutAttribute as L, OperationAttribute as O
from tensorplay.backends.cublaslt.attributes import PreferenceAttribute as P, set_attribute
from tensorplay.backends.cublaslt.descriptors import Preference
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.gemm import GemmProblem, LtKernelId, dtype_of_name

lt = library.cublaslt()
assert library.library_version().isdigit()
assert library.library_identity().startswith("libcublasLt.so."), library.library_identity()
attributes.verify_sizes()

preference = Preference(workspace_bytes=33554432, reduction_mask=5, alignment=16)
assert preference[P.MAX_WORKSPACE_BYTES] == 33554432 and preference[P.REDUCTION_SCHEME_MASK] == 5
assert all(preference[each] == 16 for each in P if "ALIGNMENT" in each.name)

problem = GemmProblem(
    dtype=dtype_of_name("bfloat16"), m=5, n=7, k=9, device="0", transpose_right=True, bias=True, activation="gelu",
    ld_right=11, batch=3, stride_left=0, out_dtype=dtype_of_name("float32"), alignment=4,
)
operation = Operation(problem)
assert [operation.descriptor[each] for each in (O.COMPUTE_TYPE, O.SCALE_TYPE, O.TRANSA, O.TRANSB, O.EPILOGUE)] == [
    68, 0, 1, 0, 36,
]
assert operation.descriptor[O.BIAS_POINTER] % 8 == 4
further = operation.further()
assert further is not operation.descriptor and further[O.BIAS_POINTER] == 0
further.set_bias(0x7000)
assert further[O.BIAS_POINTER] == 0x7000 != operation.descriptor[O.BIAS_POINTER]
same = (O.COMPUTE_TYPE, O.SCALE_TYPE, O.TRANSA, O.TRANSB, O.EPILOGUE, O.BIAS_DATA_TYPE)
assert [further[each] for each in same] == [operation.descriptor[each] for each in same]
shape = (L.TYPE, L.ROWS, L.COLS, L.LD, L.BATCH_COUNT, L.STRIDED_BATCH_OFFSET)
assert [operation.a[each] for each in shape] == [14, 9, 7, 11, 3, 77], "our right operand is the library's A"
assert [operation.b[each] for each in shape] == [14, 9, 5, 9, 3, 0], "our left operand is the library's B"
assert [operation.d[each] for each in shape] == [0, 7, 5, 7, 3, 35], "our result is the library's D"
assert operation.c is operation.d
float8 = GemmProblem(dtype=dtype_of_name("float8_e4m3fn"), m=16, n=32, k=64, device="0", transpose_right=True)
assert Operation(float8).c[L.TYPE] == 14 and Operation(float8).d[L.TYPE] == 28
assert operation.scale_count == 0 and operation.descriptor[O.A_SCALE_POINTER] == 0
mixed = Operation(
    replace(float8, left_dtype=dtype_of_name("float8_e5m2"), out_dtype=dtype_of_name("float32"), bias=True)
)
assert [each[L.TYPE] for each in (mixed.a, mixed.b, mixed.c, mixed.d)] == [28, 29, 0, 0], "our left is the library's B"
assert mixed.descriptor[O.BIAS_DATA_TYPE] == 14 and operation.descriptor[O.BIAS_DATA_TYPE] == -1
scales = (O.A_SCALE_POINTER, O.B_SCALE_POINTER, O.D_SCALE_POINTER)
assert [mixed.descriptor[each] != 0 for each in scales] == [True, True, False], "only FP8 results have a scale"
narrow = Operation(float8)
assert (mixed.scale_count, narrow.scale_count) == (2, 3)
scaled = narrow.further()
assert [scaled[each] for each in scales] == [0, 0, 0]
scaled.set_scales((0x100, 0x200, 0x300))
assert [scaled[each] for each in scales] == [0x100, 0x200, 0x300]
scaled.set_scales((0, 0x200, 0))
assert [scaled[each] for each in scales] == [0, 0x200, 0]
del mixed, narrow, scaled, further

kernel_id = LtKernelId(0, 20, 11, 3, 2, 1, 7, 4, 2)
algorithm = (c_uint64 * 8)()
for attribute, value in list(zip(AlgorithmAttribute, (0, 20, 11, 3, 2, 1, 7, 4, 2)))[1:]:
    set_attribute(lt.matmul_algo_config_set_attribute, addressof(algorithm), attribute, value)
assert read_kernel_id(addressof(algorithm)) == kernel_id
set_attribute(lt.matmul_algo_config_set_attribute, addressof(algorithm), AlgorithmAttribute.SPLITK_NUM, -1)
assert read_kernel_id(addressof(algorithm)) == replace(kernel_id, splitk=-1), "the number of splits has a sign"

before = sum(descriptors.live_descriptors().values())
for size in range(1, 200):
    Operation(replace(problem, m=size))
preference.close()
preference.close()
gc.collect()
assert sum(descriptors.live_descriptors().values()) == before - 1, descriptors.live_descriptors()
print("checked")
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the driver that answers only its version is found."""
    compiler = which("gcc") or which("cc")
    for module, package in (("nvmath", "nvmath-python"), ("cuda", "cuda-bindings"), ("nvidia", "nvidia-cublas")):
        if find_spec(module) is None:
            pytest.skip(f"{package} is not installed")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = tmp_path / "driver.c"
    source.write_text(DRIVER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
    root = str(Path(__file__).resolve().parents[3])
    return os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": root}


def test_sizes_descriptors_and_ids_agree_with_the_real_library(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.stdout.strip() == "checked", done.stderr
