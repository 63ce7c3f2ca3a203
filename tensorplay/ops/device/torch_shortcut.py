"""The hot path for tensors of torch: one look-up, one check of everything else, and the plan runs.

`mm` does it in C where the extension was built and torch has functions for that, as 2.11 has. Otherwise the look-up is
by addresses where the result's is given, since they tell alignment and overlap too, and most programs use the same ones
again; then by sizes.

What is found is what the long way has resolved for just such tensors. Where nothing is found, or anything is unusual,
the long way is taken, which also says what is wrong.
"""

from functools import cache
from typing import Any

from tensorplay.ops.device import affine, products, torch_host
from tensorplay.ops.device.compiled import direct_products
from tensorplay.ops.device.kinds import device_kind
from tensorplay.ops.device.torch_direct import Direct, note_addresses, remember
from tensorplay.ops.device.torch_guard import guard_of_kind
from tensorplay.ops.device.torch_kind import precision_switch, quick_tf32_switch, raw_stream, written_note
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.plans import Plans

__all__ = ["TorchShortcut", "torch_shortcut"]

# What tensors raise that are none, or have no memory of their own; the long way says so in our words.
_UNUSUAL = (AttributeError, RuntimeError, TypeError)
_FACTORS = (int, float)
# Larger ones may be beyond every type.
_LARGEST = 1 << 62


class TorchShortcut:
    """The operations on tensors, as `route` has them: on the host too, since a type does not tell where it is.

    Attributes
    ----------
    mm : callable
        `mm(context, a, b, out)` multiplies two matrices: `mm_in_python`, or what stands before it in C.
    """

    __slots__ = ("_allows_tf32", "_note_written", "_precision", "_products", "_stream_of", "mm")

    def __init__(self) -> None:
        self._stream_of = raw_stream()
        self._precision = precision_switch()
        self._allows_tf32 = quick_tf32_switch()
        self._note_written = written_note()
        self._products = direct_products(self.mm_in_python, self._allows_tf32, self._note_written)
        self.mm: Any = self._products or self.mm_in_python

    def mm_in_python(self, context: TuningContext, a: Any, b: Any, out: Any) -> Any:
        """Multiply two matrices."""
        if out is None:
            return self._new_mm(context, a, b)
        try:
            left, right, into = a.data_ptr(), b.data_ptr(), out.data_ptr()
            # Addresses that ran before: no size, alignment or overlap is left to look at.
            direct: Any = context.plans.get((left, right, into, None))
            is_found = (
                direct is not None
                and direct.check(a, b, out)
                and (direct.tf32 is None or self._allows_tf32() is direct.tf32)
            )
        except _UNUSUAL:
            return self._long_mm(context, None, a, b, out)
        if not is_found:
            return self._found_mm(context, a, b, out, left, right, into)
        direct.tally.calls += 1
        stream = self._stream_of(direct.device)
        try:
            direct.launch(left, right, into, stream)
        except Exception as error:  # noqa: BLE001 - the first choice decides whose fault it was
            context.recover(direct, error, left, right, into, 0, 0, 1.0, 0.0, stream)
        self._note_written((out,))
        return out

    def _found_mm(self, context: TuningContext, a: Any, b: Any, out: Any, left: int, right: int, into: int) -> Any:
        """Multiply by what is found by sizes, and let it be found sooner from now on."""
        plans = context.plans
        try:
            key = (a.numel(), b.numel(), (left | right | into) & 15, True)
            direct: Any = plans.get(key)
            while direct is not None and not direct.check(a, b, out):
                direct = direct.next
        except _UNUSUAL:
            return self._long_mm(context, None, a, b, out)
        if direct is None or not (left and right and into) or not self._is_precision_of(direct):
            return self._long_mm(context, key, a, b, out)
        if -direct.left_bytes < left - into < direct.out_bytes or -direct.right_bytes < right - into < direct.out_bytes:
            return self._long_mm(context, None, a, b, out)
        if not self._is_added(plans, direct, a, b, out):
            note_addresses(plans, direct, (left, right, into, None))
        direct.tally.calls += 1
        stream = self._stream_of(direct.device)
        try:
            direct.launch(left, right, into, stream)
        except Exception as error:  # noqa: BLE001 - as above
            context.recover(direct, error, left, right, into, 0, 0, 1.0, 0.0, stream)
        self._note_written((out,))
        return out

    def _new_mm(self, context: TuningContext, a: Any, b: Any) -> Any:
        """Multiply into a new tensor."""
        plans = context.plans
        try:
            left, right = a.data_ptr(), b.data_ptr()
            key = (a.numel(), b.numel(), (left | right) & 15)
            direct: Any = plans.get(key)
            while direct is not None and not direct.check(a, b):
                direct = direct.next
        except _UNUSUAL:
            return self._long_mm(context, None, a, b, None)
        if direct is None or not (left and right) or not self._is_precision_of(direct):
            return self._long_mm(context, key, a, b, None)
        self._is_added(plans, direct, a, b, None)
        out = a.new_empty(direct.shape)
        into = out.data_ptr()
        direct.tally.calls += 1
        stream = self._stream_of(direct.device)
        try:
            direct.launch(left, right, into, stream)
        except Exception as error:  # noqa: BLE001 - as above
            context.recover(direct, error, left, right, into, 0, 0, 1.0, 0.0, stream)
        return out

    def _is_added(self, plans: Plans, direct: Direct, a: Any, b: Any, out: Any) -> bool:
        """Return whether it will be found in C from now on."""
        return self._products is not None and self._products.add(plans, direct, guard_of_kind, a, b, out)

    def _is_precision_of(self, direct: Direct) -> bool:
        return direct.tf32 is None or (self._precision("cuda", "matmul") == "tf32") is direct.tf32

    def addmm(
        self,
        context: TuningContext,
        bias_or_c: Any,
        a: Any,
        b: Any,
        out: Any,
        alpha: Any,
        beta: Any,
        activation: str,
    ) -> Any:
        """Multiply, add a bias or a matrix, and activate the sum; the hot path is for a bias."""
        is_plain = type(alpha) is float or (type(alpha) is int and -_LARGEST <= alpha <= _LARGEST)
        if is_plain and type(beta) in _FACTORS and beta == 1 and getattr(bias_or_c, "ndim", 0) == 1:
            return self.fused("addmm", context, a, b, bias_or_c, out, alpha, activation)
        kind = device_kind(bias_or_c, a, b, out)
        if kind is None:
            return torch_host.addmm(context, bias_or_c, a, b, out, alpha=alpha, beta=beta, activation=activation)
        return affine.addmm(context, kind, bias_or_c, a, b, out, alpha=alpha, beta=beta, activation=activation).array

    def fused(
        self, name: str, context: TuningContext, a: Any, b: Any, bias: Any, out: Any, alpha: Any, activation: str
    ) -> Any:
        """Run `linear`, `addmm` with a bias, or `bmm` by what is found by sizes, or the long way."""
        tensors: tuple[Any, ...] = (a, b) if bias is None else (a, b, bias)
        if out is not None:
            tensors = (*tensors, out)
        key: Any = None
        direct: Any = None
        left = right = bias_at = into = 0
        try:
            left, right = a.data_ptr(), b.data_ptr()
            bias_at = 0 if bias is None else bias.data_ptr()
            into = 0 if out is None else out.data_ptr()
            key = (
                name, a.numel(), b.numel(), bias is None, out is None, activation,
                (left | right | bias_at | into) & 15,
            )  # fmt: skip
            direct = context.plans.get(key)
            while direct is not None and not direct.check(*tensors):
                direct = direct.next
        except _UNUSUAL:
            key, direct = None, None
        is_there = left and right and (bias is None or bias_at) and (out is None or into)
        if direct is None or not is_there or not self._is_precision_of(direct):
            return self._long_fused(name, context, key, a, b, bias, out, alpha, activation)
        is_given = out is not None
        if not is_given:
            out = a.new_empty(direct.shape)
            into = out.data_ptr()
        elif direct.overlaps(left, right, bias_at, into):
            return self._long_fused(name, context, None, a, b, bias, out, alpha, activation)
        direct.tally.calls += 1
        operands = (left, right, into, 0, bias_at, alpha, 0.0, self._stream_of(direct.device))
        try:
            direct.run(*operands)
        except Exception as error:  # noqa: BLE001 - as above
            context.recover(direct, error, *operands)
        if is_given:
            self._note_written((out,))
        return out

    @staticmethod
    def _long_mm(context: TuningContext, key: Any, a: Any, b: Any, out: Any) -> Any:
        kind = device_kind(a, b, out)
        if kind is None:
            return torch_host.mm(context, a, b, out)
        plans = context.plans
        outcome = products.mm(context, kind, a, b, out)
        remember(context, plans, key, outcome, (a, b) if out is None else (a, b, out))
        return outcome.array

    @staticmethod
    def _long_fused(
        name: str,
        context: TuningContext,
        key: Any,
        a: Any,
        b: Any,
        bias: Any,
        out: Any,
        alpha: Any,
        activation: str,
    ) -> Any:
        kind = device_kind(a, b, bias, out)
        if kind is None:
            if name == "linear":
                return torch_host.linear(context, a, b, bias, out, activation)
            if name == "addmm":
                return torch_host.addmm(context, bias, a, b, out, alpha=alpha, beta=1, activation=activation)
            return torch_host.bmm(context, a, b, out)
        plans = context.plans
        if name == "linear":
            outcome = affine.linear(context, kind, a, b, bias, out, activation)
        elif name == "addmm":
            outcome = affine.addmm(context, kind, bias, a, b, out, alpha=alpha, activation=activation)
        else:
            outcome = products.bmm(context, kind, a, b, out)
        tensors = tuple(tensor for tensor in (a, b, bias, out) if tensor is not None)
        plan = outcome.resolved.plan if outcome.resolved else None
        # A vector that was no bias was broadcast, and added as a matrix.
        is_direct = plan is not None and plan.problem.bias == (bias is not None)
        remember(context, plans, key if is_direct else None, outcome, tensors)
        return outcome.array


@cache
def torch_shortcut() -> TorchShortcut:
    """Return the one shortcut."""
    return TorchShortcut()
