"""Random products for the search for wrong winners: those of the values benchmark, and deep ones of few rows."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from cuda_reach.products import OPERATIONS, Case, random_case

__all__ = ["random_cases"]

_SEED = 4
# Where split sums and kernels for few rows are found; no weight is larger than what a host multiplies at once.
_FEW = (1, 2, 3, 4, 7, 8, 13, 16)
_WIDTHS = (64, 100, 128, 256, 777, 1024)
_DEPTHS = (512, 1000, 1024, 2048, 4095, 4096, 8192)
_MOST_ELEMENTS = 1 << 21


def random_cases(count: int) -> list[Case]:
    """Return so many different products, the same ones in every run."""
    return list(islice(_different(), count))


def _different() -> Iterator[Case]:
    rng = random.Random(_SEED)  # noqa: S311 - shapes, no secret
    seen = set()
    place = 0
    while True:
        case = random_case(rng, OPERATIONS[place % len(OPERATIONS)])
        if place % 2 and case.operation != "bmm" and case.dtype != "float8_e4m3fn":
            case = _deep(case, rng)
        place += 1
        # Factors are no part of a signature.
        posed = replace(case, alpha=1.0, beta=float(case.beta != 0.0))
        if posed not in seen:
            seen.add(posed)
            yield case


def _deep(case: Case, rng: random.Random) -> Case:
    few, width, depth = rng.choice(_FEW), rng.choice(_WIDTHS), rng.choice(_DEPTHS)
    while width * depth > _MOST_ELEMENTS:
        depth = rng.choice(_DEPTHS)
    m, n = (few, width) if rng.random() < 0.8 else (width, few)
    return replace(case, m=m, n=n, k=depth)
