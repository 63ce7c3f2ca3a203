"""The public namespace of the seed; `tunable` works with and without CUDA."""

from tensorplay.cuda import tunable

__all__ = ["tunable"]
