"""Descriptors of products with addresses in them, of which each call has one of its own while it is made."""

from ctypes import addressof, c_uint64

from tensorplay.backends.cublaslt.attributes import OperationAttribute
from tensorplay.backends.cublaslt.descriptors import MatmulDescriptor
from tensorplay.backends.cublaslt.library import cublaslt

__all__ = ["CallDescriptor"]

# The scales of our right operand, the library's A, of the left one, and of a result of FP8; no other result has one.
_SCALES = (
    OperationAttribute.A_SCALE_POINTER,
    OperationAttribute.B_SCALE_POINTER,
    OperationAttribute.D_SCALE_POINTER,
)


class CallDescriptor(MatmulDescriptor):
    """Remembers the addresses that it was given last, since most calls have the same ones as the call before.

    Parameters
    ----------
    compute_type, scale_type : int
        As the library numbers them.
    scale_count : int
        How many addresses `set_scales` takes.
    """

    def __init__(self, compute_type: int, scale_type: int, scale_count: int) -> None:
        super().__init__(compute_type, scale_type)
        self._address = c_uint64()
        self._bias = 0
        self._scales = (0,) * scale_count

    def set_bias(self, address: int) -> None:
        """Let the next call add the bias at this address."""
        if address != self._bias:
            self._address.value = address
            cublaslt().matmul_desc_set_attribute(
                self.handle, OperationAttribute.BIAS_POINTER.number, addressof(self._address), 8
            )
            self._bias = address

    def set_scales(self, addresses: tuple[int, ...]) -> None:
        """Let the next call scale by the float32 numbers there: of right, left and, where it has one, the result.

        0 stands for no scale, which is 1.
        """
        if addresses != self._scales:
            for attribute, address in zip(_SCALES[: len(self._scales)], addresses, strict=True):
                self[attribute] = address
            self._scales = addresses
