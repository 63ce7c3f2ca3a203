"""Which kernels a process has run for a shape."""

from harness.cuda_shapes import CudaShape
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.plans import resolved_items

__all__ = ["kernels_run"]


def kernels_run(context: TuningContext, shape: CudaShape) -> list[str]:
    """Return the kernel ids of the plans that a context has ready for a shape, each once, sorted; none before a run."""
    plans = [resolved.plan for _, resolved in resolved_items(context.plans)]
    return sorted({plan.kernel for plan in plans if plan is not None and plan.problem.key == shape.problem.key})
