"""The hot path of scaled FP8 products of tensors: as `torch_shortcut`, with scales and a result of another type."""

from typing import Any, NamedTuple

from tensorplay.ops.device.product import Outcome
from tensorplay.ops.device.torch_direct import remember
from tensorplay.ops.device.torch_kind import raw_stream, written_note
from tensorplay.runtime.context import TuningContext

__all__ = ["ScaledCall", "keep_outcome", "run_known", "scaled_call"]

_UNUSUAL = (AttributeError, RuntimeError, TypeError)


class ScaledCall(NamedTuple):
    """One call: what it is looked up by, its tensors without what is left out, the result's if that is given.

    The addresses are of left, right, bias, the scales of left, right and the result, and the result, 0 for none.
    """

    key: tuple[object, ...]
    tensors: tuple[Any, ...]
    out: Any
    addresses: tuple[int, ...]


def scaled_call(
    a: Any, b: Any, bias: Any, scales: tuple[Any, Any, Any], out: Any, further: tuple[object, ...]
) -> ScaledCall | None:
    """Return the call of tensors, None where anything is no tensor with memory of its own.

    `further` is what else tells calls apart.
    """
    given = (a, b, bias, *scales, out)
    try:
        addresses = tuple([0 if tensor is None else tensor.data_ptr() for tensor in given])
        left, right, bias_at, *scales_at = addresses[:6]
        if any(address & 15 for address in scales_at):
            # The library does not read such a scale; the long way copies it.
            return None
        if any(tensor is not None and not address for tensor, address in zip(given, addresses, strict=True)):
            return None
        presence = tuple([tensor is None for tensor in given])
        alignment = (left | right | bias_at | addresses[-1]) & 15
        key = ("scaled", a.numel(), b.numel(), presence, alignment, *further)
    except _UNUSUAL:
        return None
    return ScaledCall(key, tuple([tensor for tensor in given if tensor is not None]), out, addresses)


def run_known(context: TuningContext, call: ScaledCall, alpha: float) -> Any:
    """Run what is known of just such tensors and return the result, None where nothing is."""
    try:
        direct: Any = context.plans.get(call.key)
        while direct is not None and not direct.check(*call.tensors):
            direct = direct.next
    except _UNUSUAL:
        return None
    if direct is None:
        return None
    left, right, bias, *scales, into = call.addresses
    out = call.out
    if out is None:
        out = call.tensors[0].new_empty(direct.shape, dtype=direct.dtype)
        into = out.data_ptr()
    elif direct.overlaps(left, right, bias, into) or any(into <= scale < into + direct.out_bytes for scale in scales):
        return None
    direct.tally.calls += 1
    operands = (left, right, into, 0, bias, alpha, 0.0, raw_stream()(direct.device), *scales)
    try:
        direct.run(*operands)
    except Exception as error:  # noqa: BLE001 - the first choice decides whose fault it was
        context.recover(direct, error, *operands)
    if call.out is not None:
        written_note()((out,))
    return out


def keep_outcome(context: TuningContext, plans: dict[Any, Any], call: ScaledCall, outcome: Outcome) -> None:
    """Let later calls of such tensors run what ran for this one; `plans` is what was read before it."""
    remember(context, plans, call.key, outcome, call.tensors, dtype=outcome.array.dtype)
