"""From operands of any kind to the device that they are on.

Where they are on none, `mm` does what NumPy does, and the others return NotImplemented; but tensors of torch are
multiplied by torch.

Only `kinds` is imported until there is an array on a device, or a tensor.
"""

from importlib import import_module
from typing import Any

from tensorplay.ops.device.kinds import device_kind, kind_of, shortcuts
from tensorplay.ops.plain import numpy_mm
from tensorplay.runtime.context import TuningContext

__all__ = ["addmm", "bmm", "linear", "matmul", "mm"]


def mm(context: TuningContext, a: Any, b: Any, out: Any) -> Any:
    """Multiply two matrices, wherever they are."""
    product = _product("mm", context, a, b, out)
    return numpy_mm(a, b, out) if product is NotImplemented else product


def bmm(context: TuningContext, a: Any, b: Any, out: Any) -> Any:
    """Multiply two stacks of matrices."""
    shortcut = shortcuts.get(type(a))
    if shortcut is not None:
        return shortcut.fused("bmm", context, a, b, None, out, 1.0, "none")
    return _product("bmm", context, a, b, out)


def matmul(context: TuningContext, a: Any, b: Any, out: Any) -> Any:
    """Multiply as `numpy.matmul` does; two matrices go the way of `mm`."""
    if getattr(a, "ndim", 0) == 2 and getattr(b, "ndim", 0) == 2:
        shortcut = shortcuts.get(type(a))
        if shortcut is not None:
            return shortcut.mm(context, a, b, out)
    return _product("matmul", context, a, b, out)


def addmm(
    context: TuningContext, bias_or_c: Any, a: Any, b: Any, out: Any, *, alpha: Any, beta: Any, activation: str
) -> Any:
    """Return `activation(beta * bias_or_c + alpha * (a @ b))`."""
    shortcut = shortcuts.get(type(a))
    if shortcut is not None:
        return shortcut.addmm(context, bias_or_c, a, b, out, alpha, beta, activation)
    kind = device_kind(bias_or_c, a, b, out)
    if kind is None:
        by_torch = _by_torch(bias_or_c, a, b, out)
        if by_torch is None:
            return NotImplemented
        return by_torch.addmm(context, bias_or_c, a, b, out, alpha=alpha, beta=beta, activation=activation)
    affine = import_module("tensorplay.ops.device.affine")
    found = affine.addmm(context, kind, bias_or_c, a, b, out, alpha=alpha, beta=beta, activation=activation)
    return found.array


def linear(context: TuningContext, x: Any, weight: Any, bias: Any, out: Any, activation: str) -> Any:
    """Return `activation(x @ weight.T + bias)`."""
    shortcut = shortcuts.get(type(x))
    if shortcut is not None:
        return shortcut.fused("linear", context, x, weight, bias, out, 1.0, activation)
    kind = device_kind(x, weight, bias, out)
    if kind is None:
        by_torch = _by_torch(x, weight, bias, out)
        return NotImplemented if by_torch is None else by_torch.linear(context, x, weight, bias, out, activation)
    return import_module("tensorplay.ops.device.affine").linear(context, kind, x, weight, bias, out, activation).array


def _product(name: str, context: TuningContext, a: Any, b: Any, out: Any) -> Any:
    kind = device_kind(a, b, out)
    if kind is None:
        by_torch = _by_torch(a, b, out)
        return NotImplemented if by_torch is None else getattr(by_torch, name)(context, a, b, out)
    return getattr(import_module("tensorplay.ops.device.products"), name)(context, kind, a, b, out).array


def _by_torch(*operands: Any) -> Any:
    """Return the products of torch's own, None where no operand is a tensor."""
    # Not by `shortcuts`, which another thread may be about to fill.
    kinds = map(kind_of, operands)
    if any(kind is not None and kind.name == "torch" for kind in kinds):
        return import_module("tensorplay.ops.device.torch_host")
    return None
