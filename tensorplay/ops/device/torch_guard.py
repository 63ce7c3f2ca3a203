"""Whether tensors are just like those of an earlier call: type, data type, device, sizes, strides, no gradient.

torch's compiler has a check for that in C++, a third of the price of reading the attributes in Python; lazily
conjugated tensors and those under a transformation fail it too. It is private, so where it is missing, or does not
do what it should, attributes are compared.
"""

from collections.abc import Callable
from typing import Any

from tensorplay.ops.device.kind import library

__all__ = ["Check", "guard_name", "guard_of", "guard_of_kind"]

Check = Callable[..., bool]


def guard_of(*tensors: Any) -> Check:
    """Return the check that such tensors pass, in that order, and no others."""
    return _guard(tensors, has_layout=True)


def guard_of_kind(*tensors: Any) -> Check:
    """Return a check that may leave sizes and strides out, for whoever has looked at those; it takes less long."""
    return _guard(tensors, has_layout=False)


def _guard(tensors: tuple[Any, ...], *, has_layout: bool) -> Check:
    # The compiler's check lets no tensor stand in two places.
    if len({id(tensor) for tensor in tensors}) == len(tensors):
        compiled = _compiled(tensors, has_layout=has_layout)
        if compiled is not None and compiled(*tensors) is True:
            # It looks at what tensors require, but not at whether gradients are recorded.
            return _without_gradient(compiled) if any(tensor.requires_grad for tensor in tensors) else compiled
    return _compared(tensors)


def guard_name(check: Check) -> str:
    """Return `compiled`, `compared`, or `without gradient` for the compiled one of tensors that require one."""
    if getattr(check, "__module__", None) != __name__:
        return "compiled"
    return check.__qualname__.partition(".")[0].strip("_").replace("_", " ")


def _without_gradient(compiled: Check) -> Check:
    grad_is_enabled = library("torch").is_grad_enabled

    def check(*given: Any) -> bool:
        return not grad_is_enabled() and compiled(*given)

    return check


def _compiled(tensors: tuple[Any, ...], *, has_layout: bool) -> Check | None:
    try:
        guards = library("torch")._C._dynamo.guards
        made = guards.TensorGuards(
            *tensors,
            dynamic_dims_sizes=[list(tensor.shape) if has_layout else [None] * tensor.ndim for tensor in tensors],
            dynamic_dims_strides=[list(tensor.stride()) if has_layout else [None] * tensor.ndim for tensor in tensors],
        )
    except (AttributeError, TypeError, RuntimeError):
        return None
    check: Check = made.check
    return check


def _compared(tensors: tuple[Any, ...]) -> Check:
    torch = library("torch")
    grad_is_enabled = torch.is_grad_enabled

    def described(tensor: Any) -> tuple[object, ...]:
        return (
            type(tensor),
            tensor.shape,
            tensor.stride(),
            tensor.dtype,
            tensor.get_device(),
            tensor.is_neg() or tensor.is_conj(),
            tensor.requires_grad and grad_is_enabled(),
        )

    wanted = [described(tensor) for tensor in tensors]

    def check(*given: Any) -> bool:
        return [described(tensor) for tensor in given] == wanted

    return check
