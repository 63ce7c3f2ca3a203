"""Bits that NumPy has no type for, read on the host."""

import numpy as np
import pytest

from tensorplay.backends.cublaslt.host_copy import laid_out, storage_dtype, widened
from tensorplay.backends.host.layout import Layout
from tensorplay.gemm import dtype_of_name
from tensorplay.gemm.dtype import DTYPES


def test_every_storage_type_has_the_size_of_the_type() -> None:
    for dtype in DTYPES:
        assert storage_dtype(dtype).itemsize == dtype.itemsize


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_every_bit_pattern_means_what_ml_dtypes_says(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = dtype_of_name(name)
    assert dtype is not None
    bits = np.arange(1 << (8 * dtype.itemsize), dtype=storage_dtype(dtype))
    expected = bits.view(getattr(ml_dtypes, name)).astype(np.float32)
    np.testing.assert_array_equal(widened(bits, dtype), expected)


@pytest.mark.parametrize("name", ["float32", "tf32", "float64", "float16", "complex64", "complex128"])
def test_types_that_numpy_has_stay_as_they_are(name: str) -> None:
    dtype = dtype_of_name(name)
    assert dtype is not None
    numbers = np.arange(6).reshape(2, 3).astype(storage_dtype(dtype)).T
    result = widened(numbers, dtype)
    assert result.dtype == storage_dtype(dtype)
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, numbers)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn", "complex64"])
def test_an_operand_is_seen_where_it_lies_and_written_to_nowhere_else(name: str) -> None:
    dtype = dtype_of_name(name)
    assert dtype is not None
    for layout in (Layout(2, 3, 4, 6, 20), Layout(1, 3, 4, 4, 12, transposed=True)):
        memory = np.full(layout.elements * dtype.itemsize, 7, np.uint8)
        seen = laid_out(memory, dtype, layout)
        assert seen.shape == ((2, 3, 4) if layout.batch == 2 else (4, 3))
        seen.T[...] = 0
        assert np.count_nonzero(memory == 0) == layout.batch * 12 * dtype.itemsize
        assert set(memory) <= {0, 7}
        assert widened(seen, dtype).shape == seen.shape
