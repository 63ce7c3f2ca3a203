"""Grouped products: several pairs of matrices of any sizes, in one call of the library where that is faster."""

from collections.abc import Sequence
from typing import Any

from tensorplay.backends.cublaslt import grouped_limits
from tensorplay.errors import ShapeError
from tensorplay.locks import imported
from tensorplay.ops.device.kinds import kind_of
from tensorplay.ops.products import mm
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import get_tuning_context

__all__ = ["grouped_mm"]


def grouped_mm(left: Sequence[Any], right: Sequence[Any], *, out: Sequence[Any] | None = None) -> list[Any]:
    """Multiply `left[i] @ right[i]` for each i; sizes may differ from pair to pair.

    Many small products on a GPU, of float32, float64, float16 or bfloat16, are enqueued in one call of classic cuBLAS,
    which is not tuned. All others are products of their own, one after another, tuned as `mm` tunes them: few or
    large ones, those of other types, those whose results overlap something, and all under a graph capture.

    Parameters
    ----------
    left, right : sequence of array (m, k) and (k, n)
        The pairs.
    out : sequence of array (m, n), optional
        Where the results go.

    Returns
    -------
    list of array
        `out` as a list, if given.

    Raises
    ------
    ShapeError
        When the sequences differ in length, before anything runs, or a pair does not fit.
    OperandError
        As `mm`.

    Notes
    -----
    One call and a loop may round differently. A list of sizes that was captured once runs in a loop ever after, so
    that eager reruns have the bits of the graph's replays.
    """
    outs: Sequence[Any] = [None] * len(left) if out is None else out
    if not len(left) == len(right) == len(outs):
        raise ShapeError(
            f"a group has one left and one right operand for each product; given: {len(left)} and {len(right)}"
            + ("" if out is None else f", and {len(outs)} outputs")
        )
    if len(left) >= grouped_limits.LEAST_PRODUCTS:
        products = _at_once(get_tuning_context(), left, right, out)
        if products is not None:
            return products
    return [mm(a, b, out=into) for a, b, into in zip(left, right, outs, strict=True)]


def _at_once(
    context: TuningContext, left: Sequence[Any], right: Sequence[Any], out: Sequence[Any] | None
) -> list[Any] | None:
    """Return the products of a group that goes in one call, else None, nothing being done."""
    kind = kind_of(left[0])
    if kind is None or _is_large(left[0], right[0]):
        return None
    if kind.name == "torch":
        found = imported("tensorplay.ops.device.torch_groups").torch_groups(kind)
    else:
        found = imported("tensorplay.ops.device.groups").groups()
    products: list[Any] | None = found.multiply(context, left, right, out)
    return products


def _is_large(left: Any, right: Any) -> bool:
    """Return whether one product says already that its group goes one by one."""
    shapes: list[Any] = [getattr(array, "shape", ()) for array in (left, right)]
    if [len(shape) for shape in shapes] != [2, 2]:
        return True
    (m, k), (_, n) = shapes
    return bool(m * k * n > max(grouped_limits.MOST_MULTIPLICATIONS.values()))
