"""What runs tensors of torch directly, once the long way has resolved it for just such tensors."""

from dataclasses import dataclass, field, replace
from typing import Any

from tensorplay.backends.base import Launch
from tensorplay.ops.device.problem import dtype_of
from tensorplay.ops.device.product import Outcome
from tensorplay.ops.device.torch_guard import Check, guard_of
from tensorplay.ops.device.view import span
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.resolved import Resolved

__all__ = ["Direct", "note_addresses", "remember"]

# Tensors of the same sizes that differ otherwise; the least recently met is forgotten.
_LONGEST_CHAIN = 8
# Addresses that are found at once, of one `Direct`, and while there is much room: the shapes need it.
_MOST_ADDRESSES = 64
_MOST_PLANS = 1 << 14


Addresses = tuple[int, int, int, None]
"""Of left, right and out; the None tells them from sizes."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Direct(Resolved):
    """What runs tensors that pass `check`.

    Attributes
    ----------
    launch : callable
        `launch(left, right, out, stream)` is `run` for a product without bias.
    check : callable
        Says whether the tensors of a call are like those that this was resolved for.
    shape : tuple of int
        Of the result.
    device : int
        Ordinal.
    dtype : torch.dtype or None
        Of the result where it is made anew in another type than the operands'; else None.
    tf32 : bool or None
        Whether TF32 was allowed; None where it does not matter.
    left_bytes, right_bytes, bias_bytes, out_bytes : int
        From the first byte of each operand to its last, to know an overlap by.
    next : Direct or None
        What else there is for tensors of the same sizes.
    addresses : set of tuple
        Those by which this is found at once.
    """

    launch: Launch
    check: Check
    shape: tuple[int, ...]
    device: int
    dtype: Any
    tf32: bool | None
    left_bytes: int
    right_bytes: int
    bias_bytes: int
    out_bytes: int
    next: "Direct | None"
    addresses: set[Addresses] = field(default_factory=set)

    def overlaps(self, left: int, right: int, bias: int, out: int) -> bool:
        """Return whether the result at an address shares memory with an operand; a `bias` of 0 is none."""
        end = self.out_bytes
        return (
            -self.left_bytes < left - out < end
            or -self.right_bytes < right - out < end
            or (bias != 0 and -self.bias_bytes < bias - out < end)
        )


def note_addresses(plans: dict[Any, Resolved], direct: Direct, addresses: Addresses) -> None:
    """Let `direct` be found by the addresses of left, right and out, which are aligned for it and do not overlap.

    That other tensors lie there later does not matter: `check` is asked all the same.
    """
    known = direct.addresses
    if addresses in known or (len(known) < _MOST_ADDRESSES and len(plans) < _MOST_PLANS):
        known.add(addresses)
        plans[addresses] = direct


def remember(
    context: TuningContext,
    plans: dict[Any, Resolved],
    key: Any,
    outcome: Outcome,
    tensors: tuple[Any, ...],
    dtype: Any = None,
) -> None:
    """Let later calls of such tensors run what ran for these, if that was settled and nothing was copied.

    `plans` is what was read before resolving; with the key None nothing is remembered. A result that is made anew is
    so by `Tensor.new_empty`, so it must be of the operands' own type unless `dtype` is given.
    """
    resolved, out = outcome.resolved, outcome.out
    if resolved is None or key is None or not resolved.cacheable:
        return
    if dtype is None and out.dtype != outcome.left.dtype:
        return
    left_bytes, right_bytes, out_bytes = (
        span(view.shape, view.strides) * dtype_of(view).itemsize for view in (outcome.left, outcome.right, out)
    )
    direct = Direct(
        run=resolved.run,
        tally=resolved.tally,
        signature=resolved.signature,
        plan=resolved.plan,
        first_choice=resolved.first_choice,
        launch=_launch_of(resolved),
        check=guard_of(*tensors),
        shape=tuple(outcome.array.shape),
        device=out.device,
        dtype=dtype,
        tf32=outcome.tf32 if out.dtype == "float32" else None,
        left_bytes=left_bytes,
        right_bytes=right_bytes,
        # A bias of an FP8 result has twice its size.
        bias_bytes=out.shape[-1] * max(2, dtype_of(out).itemsize),
        out_bytes=out_bytes,
        next=_shortened(plans.get(key), tensors),
    )
    context.keep(plans, key, direct)


def _launch_of(resolved: Resolved) -> Launch:
    """Return the plan's own `launch` where it has one and a call does nothing else than run the plan."""
    plan, run = resolved.plan, resolved.run
    if plan is not None and plan.launch is not None and run is plan.run:
        return plan.launch

    def launch(left: int, right: int, out: int, stream: int) -> object:
        return run(left, right, out, 0, 0, 1.0, 0.0, stream)

    return launch


def _shortened(chain: Resolved | None, tensors: tuple[Any, ...]) -> Direct | None:
    """Return a chain without what such tensors would have run, and without its end where it is too long."""
    links: list[Direct] = []
    while isinstance(chain, Direct) and len(links) < _LONGEST_CHAIN - 1:
        if not chain.check(*tensors):
            links.append(chain)
        chain = chain.next
    shortened: Direct | None = None
    for link in reversed(links):
        shortened = _followed_by(link, shortened)
    return shortened


def _followed_by(link: Direct, following: Direct | None) -> Direct:
    return link if link.next is following else replace(link, next=following)
