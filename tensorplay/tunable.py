"""The functions of `tensorplay.cuda.tunable`, by a name that promises no CUDA."""

from tensorplay.cuda import tunable as _tunable
from tensorplay.cuda.tunable import *  # noqa: F403 - the same names, by design

__all__ = _tunable.__all__
