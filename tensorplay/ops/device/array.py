"""Arrays in device memory for those who have no array library with CUDA."""

# NumPy's annotations stay text, so that nothing is imported for them.
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorplay.backends.cublaslt.array_memory import ArrayMemory
from tensorplay.errors import OperandError
from tensorplay.gemm import dtype_of_name
from tensorplay.ops.device import dlpack
from tensorplay.ops.device.byte_strides import dense_strides
from tensorplay.ops.device.cuda_array_interface import LEGACY_STREAM, typestr_of
from tensorplay.ops.device.edge import chosen_device, copy_from, copy_to, fill_zero, order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["DeviceArray", "asarray", "new_array"]


class DeviceArray:
    """A dense array in the memory of one device, made by `asarray` and by products of such arrays.

    Its memory is a plain allocation, freed when nobody uses it any more, which waits for the device. Everything is
    done in the order of the legacy default stream. Other libraries take it by `__dlpack__`, without copying.

    Attributes
    ----------
    shape : tuple of int
        Sizes, outermost first.
    dtype : numpy.dtype
        Of its elements.
    device : int
        Ordinal of its device.
    pointer : int
        Address of its first element.
    """

    __slots__ = ("__weakref__", "_memory", "device", "dtype", "pointer", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: int) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self._memory = ArrayMemory(device, self.nbytes)
        self.pointer = self._memory.address

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements."""
        return self.size * int(self.dtype.itemsize)

    @property
    def buffer(self) -> Any:
        """Return its memory as a `cuda.core.Buffer`, which keeps it alive; None where cuda.core is not installed.

        Whoever uses it on another stream than the legacy default one orders the two.
        """
        return self._memory.buffer

    def numpy(self) -> NDArray[Any]:
        """Return a copy in host memory, after waiting for what computes the array."""
        import numpy as np  # noqa: PLC0415 - who has no use for NumPy need not have it loaded

        copied: NDArray[Any] = np.empty(self.shape, self.dtype)
        if self.size:
            copy_from(copied, self.pointer, self.device)
        return copied

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype.name}, device={self.device})"

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a capsule; the consumer's `stream` is made to wait for what computes the array, -1 leaves it."""
        del max_version
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a DeviceArray is shown where it is, without a copy; use .numpy() for one on the host")
        if stream is not None and stream not in {-1, 0, LEGACY_STREAM}:
            order(self.device, stream, LEGACY_STREAM)
        shown = dlpack.Tensor(
            self.pointer, self.shape, dense_strides(self.shape), self.dtype.name, dlpack.CUDA, self.device
        )
        return dlpack.capsule_of(shown, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Return the array by version 3; AttributeError for types that it cannot name: those go by DLPack."""
        typestr = typestr_of(self.dtype.name)
        if typestr is None:
            raise AttributeError(f"__cuda_array_interface__ has no name for {self.dtype.name}; use __dlpack__")
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.pointer if self.size else 0, False),
            "strides": None,
            "stream": LEGACY_STREAM,
            "version": 3,
        }


def asarray(array: ArrayLike | DeviceArray, device: int | None = None) -> DeviceArray:
    """Copy an array from the host to a device.

    Parameters
    ----------
    array : array
        What `numpy.asarray` takes; a `DeviceArray` that is on the device already is returned as it is.
    device : int, optional
        Ordinal of the device; the thread's current one unless given.

    Returns
    -------
    DeviceArray
        Dense, stored by rows.

    Raises
    ------
    OperandError
        When the type is none that products are done in, or there is no such device, or no CUDA at all.
    MemoryError
        When the device has not enough memory.
    """
    import numpy as np  # noqa: PLC0415 - as above

    if isinstance(array, DeviceArray):
        if device is None or device == array.device:
            return array
        array = array.numpy()
    source = np.asarray(array)
    if source.dtype.byteorder == ">":
        source = source.astype(source.dtype.newbyteorder("="))
    if dtype_of_name(source.dtype.name) is None:
        raise OperandError(
            f"an array of {source.dtype.name} is not put on a device; allowed: float16, bfloat16, float32, float64, "
            "complex64, complex128, float8_e4m3fn, float8_e5m2"
        )
    copied = DeviceArray(source.shape, source.dtype, chosen_device(device))
    if source.size:
        copy_to(copied.pointer, np.ascontiguousarray(source), copied.device)
    return copied


def new_array(shape: tuple[int, ...], dtype: str, device: int, *, zero: bool = False) -> DeviceArray:
    """Return a new array of the type called `dtype`, its contents zero or not set."""
    made = DeviceArray(shape, _numpy_dtype(dtype), device)
    if zero and made.size:
        fill_zero(made.pointer, made.nbytes, device)
    return made


def _numpy_dtype(name: str) -> Any:
    import numpy as np  # noqa: PLC0415 - as above

    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
