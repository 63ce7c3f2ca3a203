"""Which CUDA C++ a warp sums with.

Each way is a `Sum` of ROWS rows: it loads chunks of the depth into one of STAGES stages, adds a stage up, and leaves
its sums in shared memory, column by column. A loop, `summed`, goes through a warp's part of the depth.
"""

from tensorplay.backends.cublaslt.skinny.adding_text import ADDS_ACROSS, ADDS_ALONG
from tensorplay.backends.cublaslt.skinny.kernel_text import REGISTER_LOOP
from tensorplay.backends.cublaslt.skinny.matrix_text import MATRIX_ACROSS, MATRIX_ALONG
from tensorplay.backends.cublaslt.skinny.ring_across_text import RING_ACROSS
from tensorplay.backends.cublaslt.skinny.ring_text import RING_ALONG, RING_LOOP

__all__ = ["SUMS"]

SUMS = {
    (2, True): RING_ALONG + RING_LOOP,
    (2, False): RING_ACROSS + RING_LOOP,
    (1, True): MATRIX_ALONG + REGISTER_LOOP,
    (1, False): MATRIX_ACROSS + REGISTER_LOOP,
    (0, True): ADDS_ALONG + REGISTER_LOOP,
    (0, False): ADDS_ACROSS + REGISTER_LOOP,
}
"""By the configuration's `mma`, and whether the sum runs along stored rows of the weight."""
