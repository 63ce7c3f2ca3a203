"""Device operands as NumPy arrays: copied to the host, and what NumPy has no type for widened to float32."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.status import check
from tensorplay.backends.host.layout import Layout
from tensorplay.gemm import DType

__all__ = ["bytes_from_device", "from_device", "laid_out", "storage_dtype", "to_device", "widened"]

_STORAGE = {
    "tf32": "float32",
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
}


def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy type of the same size, unsigned integers standing for bits that NumPy cannot read."""
    return np.dtype(_STORAGE.get(dtype.name, dtype.name))


def from_device(address: int, dtype: DType, layout: Layout, stream: int) -> NDArray[Any]:
    """Copy an operand that lies so, and return it as it is used; waits for the stream.

    Raises
    ------
    LaunchError
        When anything that was enqueued on the stream before failed.
    """
    stored = bytes_from_device(address, layout.elements * dtype.itemsize, stream)
    return widened(laid_out(stored, dtype, layout), dtype)


def bytes_from_device(address: int, nbytes: int, stream: int) -> NDArray[np.uint8]:
    """Copy memory as it is; waits for the stream, and raises as `from_device` does."""
    stored = np.empty(nbytes, np.uint8)
    cuda = driver()
    check(cuda.cuMemcpyDtoHAsync(stored.ctypes.data, address, nbytes, stream), "copying from the device")
    check(cuda.cuStreamSynchronize(stream), "waiting for the device")
    return stored


def laid_out(memory: NDArray[np.uint8], dtype: DType, layout: Layout) -> NDArray[Any]:
    """Return the stored elements of an operand that lies so, a view of its memory as the operand is used."""
    stored, item = memory.view(storage_dtype(dtype)), dtype.itemsize
    array = np.lib.stride_tricks.as_strided(
        stored, (layout.batch, layout.rows, layout.columns), (layout.stride * item, layout.ld * item, item)
    )
    if layout.transposed:
        array = array.swapaxes(1, 2)
    return array if layout.batch > 1 else array[0]


def to_device(array: NDArray[Any], address: int, stream: int) -> None:
    """Copy a contiguous array to the device; waits for the stream, so the array may go."""
    cuda = driver()
    check(cuda.cuMemcpyHtoDAsync(address, array.ctypes.data, array.nbytes, stream), "copying to the device")
    check(cuda.cuStreamSynchronize(stream), "waiting for the device")


def widened(stored: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Return the numbers that the stored bits mean, in float32 where NumPy has no such type; contiguous."""
    if dtype.name == "bfloat16":
        return (np.ascontiguousarray(stored).astype(np.uint32) << 16).view(np.float32)
    if dtype.name in _STORAGE and dtype.name != "tf32":
        exponent_bits = 4 if dtype.name == "float8_e4m3fn" else 5
        values: NDArray[Any] = _float8_values(exponent_bits)[stored]
        return values
    return np.ascontiguousarray(stored)


@cache
def _float8_values(exponent_bits: int) -> NDArray[np.float32]:
    """Return what each of the 256 codes means; the type of 4 exponent bits has no infinity and one NaN a sign."""
    mantissa_bits = 7 - exponent_bits
    bias = 2 ** (exponent_bits - 1) - 1
    codes = np.arange(256)
    exponent = (codes >> mantissa_bits) & (2**exponent_bits - 1)
    fraction = (codes & (2**mantissa_bits - 1)) / 2.0**mantissa_bits
    size = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - float(bias)))
    if exponent_bits == 4:
        size[(codes & 0x7F) == 0x7F] = np.nan
    else:
        size[exponent == 31] = np.where(fraction[exponent == 31] == 0, np.inf, np.nan)
    values: NDArray[np.float32] = np.where(codes & 0x80, -size, size).astype(np.float32)
    return values
