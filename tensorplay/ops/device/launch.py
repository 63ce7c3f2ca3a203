"""Running a product on views that a plan can take: resolving it, ordering it after its operands, and running it."""

from collections.abc import Sequence
from typing import Any

from tensorplay.backends.base import Backend
from tensorplay.errors import OperandError, TensorPlayError
from tensorplay.ops.device import edge
from tensorplay.ops.device.kind import Kind
from tensorplay.ops.device.problem import alignment_of, pose
from tensorplay.ops.device.view import DeviceView
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.resolved import Resolved

__all__ = ["backend_of", "launch"]


def launch(
    context: TuningContext,
    kind: Kind,
    left: DeviceView,
    right: DeviceView,
    out: DeviceView,
    *,
    bias: DeviceView | None = None,
    c: DeviceView | None = None,
    accumulate: bool = False,
    activation: str = "none",
    tf32: bool = False,
    alpha: Any = 1.0,
    beta: Any = 0.0,
    scales: Sequence[DeviceView | None] = (),
) -> Resolved:
    """Enqueue `out = activation(alpha * left @ right + beta * c + bias)` on the stream of `out`; return what ran.

    `c` lies as `out` does, and None stands for `out` itself. Nothing is empty, all views are usable. Products of FP8
    may have `scales` of left, right and the result.

    Raises
    ------
    OperandError
        When nothing here, or no library, can run it.
    LaunchError
        When the library refuses.
    """
    stream = out.stream
    views = [view for view in (left, right, bias, c, *scales) if view is not None]
    bias_at, c_at = bias.pointer if bias else 0, c.pointer if c else 0
    alignment = alignment_of(left.pointer | right.pointer | out.pointer | bias_at | c_at)
    key = (
        "device", left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype, out.shape,
        out.strides, out.dtype, out.device, bias is None, accumulate, activation, alignment, tf32,
    )  # fmt: skip
    plans = context.plans
    resolved = plans.get(key)
    if resolved is None:
        problem = pose(
            left,
            right,
            out,
            alignment=alignment,
            bias=bias is not None,
            accumulate=accumulate,
            activation=activation,
            tf32=tf32,
            workspace_mib=context.workspace_mib,
        )
        resolved = context.resolve(problem, backend_of(context, problem.device), stream)
        context.keep(plans, key, resolved)
    else:
        resolved.tally.calls += 1
    _wait_for(views, out)
    scales_at = [view.pointer if view else 0 for view in scales]
    operands = (left.pointer, right.pointer, out.pointer, c_at, bias_at, alpha, beta, stream, *scales_at)
    try:
        resolved.run(*operands)
    except Exception as error:  # noqa: BLE001 - the first choice decides whose fault it was
        context.recover(resolved, error, *operands)
    _let_wait(kind, views, out)
    return resolved


def backend_of(context: TuningContext, device: str) -> Backend:
    """Return the backend of a device; `OperandError` when nothing here multiplies on it, with the reason."""
    try:
        return context.backend(device)
    except TensorPlayError as error:
        raise OperandError(f"arrays on a GPU cannot be multiplied here: {error}") from error


def _wait_for(views: Sequence[DeviceView], out: DeviceView) -> None:
    for stream in {view.stream for view in views} - {out.stream}:
        edge.order(out.device, out.stream, stream)


def _let_wait(kind: Kind, views: Sequence[DeviceView], out: DeviceView) -> None:
    """Keep whoever owns the operands from changing them before they are read."""
    if not kind.is_ordered:
        edge.synchronize(out.device, out.stream)
        return
    for stream in {view.stream for view in views} - {out.stream}:
        edge.order(out.device, stream, out.stream)
