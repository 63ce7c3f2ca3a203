"""Sources are compiled by NVRTC where it is installed, each once, and their constants are what they are made from."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.compiler import machine_code
from tensorplay.backends.cublaslt.cubin_cache import CubinCache
from tensorplay.backends.cublaslt.skinny.choice import is_possible, promising
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.shape import Shape, skinny_shape
from tensorplay.backends.cublaslt.skinny.source_text import source_text
from tensorplay.gemm import GemmProblem, dtype_of_name

SAMPLE = [
    ("bfloat16", 1, True, Configuration(0, 16, 8, 1, 16, 2, 128)),
    ("float32", 16, False, Configuration(0, 64, 32, 2, 4, 1, 64)),
    ("float16", 16, True, Configuration(1, 24, 24, 1, 16, 4, 256)),
    ("bfloat16", 8, False, Configuration(1, 64, 64, 2, 16, 2, 256)),
    ("bfloat16", 8, True, Configuration(2, 112, 112, 1, 16, 3, 128)),
    ("float16", 16, True, Configuration(2, 48, 48, 2, 16, 3, 256)),
    ("bfloat16", 8, True, Configuration(2, 32, 32, 1, 32, 2, 128)),
    ("bfloat16", 16, True, Configuration(2, 16, 16, 1, 64, 1, 256)),
    ("bfloat16", 16, False, Configuration(2, 64, 64, 2, 16, 4, 512)),
]


def posed(name: str, columns: int, depth: int = 4100, **further: Any) -> Shape:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return skinny_shape(GemmProblem(dtype=dtype, m=columns, n=4096, k=depth, device="0", ld_right=4104, **further))


@pytest.mark.parametrize(("name", "columns", "is_along", "configuration"), SAMPLE, ids=lambda value: str(value)[:40])
def test_a_sample_of_the_kernels_compiles_and_is_kept(
    tmp_path: Path, name: str, columns: int, is_along: bool, configuration: Configuration
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    shape, files = posed(name, columns, transpose_right=is_along, ld_left=4104), CubinCache(tmp_path)
    assert is_possible(configuration, shape)
    source = source_text(configuration, shape)
    code = machine_code(source, (9, 0), files)
    assert code.startswith(b"\x7fELF")
    assert machine_code(source, (9, 0), files) == code
    assert len(list(tmp_path.iterdir())) == 1


@given(depth=st.integers(1, 20000), rows=st.integers(17, 9999))
def test_shapes_that_differ_in_size_alone_share_a_few_sources(depth: int, rows: int) -> None:
    dtype = dtype_of_name("bfloat16")
    assert dtype is not None
    whole, sources = Configuration(2, 32, 32, 1, 16, 2, 256), set()
    for k in (depth * 64, depth * 64 + 64, depth * 64 + 8):
        problem = GemmProblem(dtype=dtype, m=8, n=rows, k=k, device="0", transpose_right=True)
        sources.add(source_text(whole, skinny_shape(problem)))
    assert len(sources) == 2


def test_each_promising_configuration_has_a_source_of_its_own() -> None:
    shape = posed("bfloat16", 4, transpose_right=True, ld_left=4104)
    ranked = promising(shape, multiprocessors=132, clusters=True)
    assert len({source_text(each, shape) for each in ranked}) == len(ranked)
