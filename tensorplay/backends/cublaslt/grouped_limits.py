"""For which groups one call of the library is faster than one after another: the numbers, in one place. Pure.

A loop of launches is bound by the host as long as each product is small, and each alone leaves most of the device
idle; large ones fill it, and then a kernel chosen for each beats one for all. `benchmark/bench_grouped.py` measures
where one becomes the other.
"""

from collections.abc import Iterable

from tensorplay.backends.cublaslt.member import Member

__all__ = ["LEAST_PRODUCTS", "MOST_MULTIPLICATIONS", "UNIFORM_IS_BATCHED", "is_worthwhile"]

LEAST_PRODUCTS = 4
"""Fewer are launched one by one."""

MOST_MULTIPLICATIONS = {
    "float32": 512**3,
    "tf32": 512**3,
    "float64": 512**3,
    "float16": 1024**3,
    "bfloat16": 1024**3,
}
"""m * n * k of the largest product of a group, by type."""

UNIFORM_IS_BATCHED = True
"""Whether a group of products that are all alike takes the library's batched call instead of its grouped one."""


def is_worthwhile(dtype: str, members: Iterable[Member]) -> bool:
    """Return whether products that are all not empty go in one call."""
    sizes = [member.multiplications for member in members]
    return len(sizes) >= LEAST_PRODUCTS and max(sizes) <= MOST_MULTIPLICATIONS.get(dtype, 0)
