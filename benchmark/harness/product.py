"""The contestants of every comparison: NumPy's product, TensorPlay's under a context, and one kernel alone."""

from functools import partial

import numpy as np

from harness.host_shapes import Operands
from harness.timing import Contestant, statement
from tensorplay import mm
from tensorplay.backends.base import Plan
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import state

__all__ = ["kernel_alone", "numpy_matmul", "tensorplay_mm"]


def numpy_matmul(operands: Operands) -> Contestant:
    """Return `numpy.matmul(a, b, out=c)`."""
    a, b, c = operands
    return Contestant(statement("matmul(a, b, out=c)", matmul=np.matmul, a=a, b=b, c=c))


def tensorplay_mm(operands: Operands, context: TuningContext) -> Contestant:
    """Return `tensorplay.mm(a, b, out=c)` as it runs under `context`, which it leaves in place."""
    a, b, c = operands
    return Contestant(statement("mm(a, b, out=c)", mm=mm, a=a, b=b, c=c), partial(setattr, state, "context", context))


def kernel_alone(operands: Operands, plan: Plan) -> Contestant:
    """Return the plan's own `run(a, b, c)`."""
    a, b, c = operands
    return Contestant(statement("run(a, b, c)", run=plan.run, a=a, b=b, c=c))
