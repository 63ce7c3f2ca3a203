"""What is tuned: data types, problems, and the text of signatures and kernel ids. Pure: no clock, file or device."""

from tensorplay.gemm.dtype import DType, dtype_of_name, dtype_of_word
from tensorplay.gemm.kernel_id import DEFAULT, HostKernelId, LtKernelId, SourceKernelId, is_kernel_id, parse_kernel_id
from tensorplay.gemm.problem import GemmProblem
from tensorplay.gemm.signature import Signature, is_signature, parse_signature, signature_of

__all__ = [
    "DEFAULT",
    "DType",
    "GemmProblem",
    "HostKernelId",
    "LtKernelId",
    "Signature",
    "SourceKernelId",
    "dtype_of_name",
    "dtype_of_word",
    "is_kernel_id",
    "is_signature",
    "parse_kernel_id",
    "parse_signature",
    "signature_of",
]
