"""Grouped products: several pairs of matrices, of any sizes, one after another."""

from collections.abc import Sequence
from typing import Any

from tensorplay.errors import ShapeError
from tensorplay.ops.products import mm

__all__ = ["grouped_mm"]


def grouped_mm(left: Sequence[Any], right: Sequence[Any], *, out: Sequence[Any] | None = None) -> list[Any]:
    """Multiply `left[i] @ right[i]` for each i; sizes may differ from pair to pair.

    Each pair is a product of its own, tuned as `mm` tunes it, on the stream of its arrays: the library's grouped
    call wants lists of addresses in device memory, and writing those costs more than the launches that it saves.

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
    """
    outs: Sequence[Any] = [None] * len(left) if out is None else out
    if not len(left) == len(right) == len(outs):
        raise ShapeError(
            f"a group has one left and one right operand for each product; given: {len(left)} and {len(right)}"
            + ("" if out is None else f", and {len(outs)} outputs")
        )
    return [mm(a, b, out=into) for a, b, into in zip(left, right, outs, strict=True)]
