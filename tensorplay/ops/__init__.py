"""The operations that people call: products of NumPy arrays, tuned when the feature is on."""

from tensorplay.ops.affine import addmm, linear
from tensorplay.ops.products import bmm, matmul, mm

__all__ = ["addmm", "bmm", "linear", "matmul", "mm"]
