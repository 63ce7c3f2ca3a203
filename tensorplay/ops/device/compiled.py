"""The hot path of `mm` on tensors in C, where the extension was built and torch has functions for C."""

from collections.abc import Callable, Sequence
from typing import Any

from tensorplay.extensions import extension
from tensorplay.ops.device.kind import library

__all__ = ["direct_products"]

_EXCHANGE = "__dlpack_c_exchange_api__"


def direct_products(
    long_way: Callable[..., Any], allows_tf32: Callable[[], bool], note_written: Callable[[Sequence[Any]], object]
) -> Any | None:
    """Return what multiplies tensors of torch as `long_way` does, by what was added to it; None where it cannot be.

    `long_way(context, a, b, out)` is called for whatever was not added, or is unusual. A layout is added with
    `add(plans, direct, make_check, a, b, out)`, and known for as long as `plans` are the context's.
    """
    built = extension("tensorplay.ops.device._direct")
    torch = library("torch")
    exchange = getattr(torch.Tensor, _EXCHANGE, None)
    if built is None or exchange is None:
        return None
    launches = extension("tensorplay.backends.cublaslt._launch")
    try:
        return built.DirectProducts(
            exchange=exchange,
            types=(torch.Tensor, torch.nn.Parameter),
            allows_tf32=allows_tf32,
            note_written=note_written,
            long_way=long_way,
            launcher=None if launches is None else launches.launcher,
        )
    except (AttributeError, TypeError, ValueError):
        # Another version's idea of these functions.
        return None
