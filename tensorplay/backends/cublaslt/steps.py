"""Steps from one cuBLASLt configuration to others that differ in little: one attribute, or two that belong together.

Pure: which of them run is for the library to say.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, zip_longest

from tensorplay.backends.cublaslt.capabilities import Capabilities
from tensorplay.gemm import LtKernelId

__all__ = ["OWN_SPLIT", "first_steps", "steps"]

OWN_SPLIT = -1
"""The number of splits of algorithms that divide sums themselves, as the device is filled best."""

TileSize = Callable[[int], tuple[int, int] | None]

_SPLITS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32)
# The scheme whose parts keep the precision of the sum comes first.
_REDUCTIONS = (2, 1, 4)
# 1x1, 2x1, 1x2, and so on by how many blocks they hold; 0 leaves it to the library, 1 is no shape.
_CLUSTERS = (2, 3, 5, 4, 8, 6, 17, 0, *range(7, 17), *range(18, 52))
_USUAL_CLUSTERS = _CLUSTERS[:3]
_INNER_SHAPES = range(5)
_LARGEST_CUSTOM = 255
# How many near values of one attribute are combined with the other of a pair.
_NEAR = 6
# Of each other algorithm so many tiles and stages are tried.
_OTHER_TILES, _OTHER_STAGES = 2, 3
# Orders of tiles by nearness: one for each tile that a search comes to, and each algorithm.
_MOST_REMEMBERED = 1024


def steps(at: LtKernelId, may: Capabilities, *, reductions: Iterable[int], tile_size: TileSize) -> Iterator[LtKernelId]:
    """Yield configurations of the same algorithm, each once, kinds of step by turns and near values first.

    Parameters
    ----------
    at : LtKernelId
        Where to start.
    may : Capabilities
        Of its algorithm.
    reductions : iterable of int
        Schemes that may add up split sums; none where sums must not be split.
    tile_size : callable
        Rows and columns of a tile.
    """
    allowed = [scheme for scheme in _REDUCTIONS if scheme in set(reductions) and scheme & may.reductions]
    tiles = _near_tiles(at.tile, may.tiles, tile_size)
    stages = sorted((each for each in may.stages if each != at.stages), key=lambda each: abs(each - at.stages))
    kinds = (
        (replace(at, tile=tile) for tile in tiles),
        _clusters(at),
        (replace(at, custom=custom) for custom in _near_numbers(at.custom, min(may.custom_max, _LARGEST_CUSTOM))),
        _splits(at, allowed if may.splits else []),
        (replace(at, stages=each) for each in stages),
        [replace(at, swizzle=1 - at.swizzle)] if may.swizzles and at.swizzle in {0, 1} else [],
        (replace(at, inner=inner) for inner in _INNER_SHAPES if at.inner and inner),
        _as_full(at, tiles, allowed if may.splits else [], tile_size),
    )
    pairs = (
        (replace(at, tile=tile, stages=each) for tile in tiles[:_NEAR] for each in stages[:_NEAR]),
        (
            replace(at, tile=tile, cluster=cluster)
            for tile in tiles[:_NEAR]
            for cluster in _USUAL_CLUSTERS
            if at.cluster
        ),
    )
    seen = {at}
    # Lazily: a search asks for a few of hundreds, a thousand times.
    for step in chain(_by_turns(kinds), _by_turns(pairs)):
        if step not in seen:
            seen.add(step)
            yield step


def first_steps(at: LtKernelId, other: int, may: Capabilities, *, tile_size: TileSize) -> Iterator[LtKernelId]:
    """Yield configurations of another algorithm that are as near as its capabilities allow; sums are not split."""
    near = (at.tile,) if at.tile in may.tiles else _near_tiles(at.tile, may.tiles, tile_size)[:_OTHER_TILES]
    tiles = near or (0,)
    stages = [at.stages] if at.stages in may.stages else list(_spread(may.stages, _OTHER_STAGES)) or [0]
    # An algorithm either has cluster shapes or knows none, and so it is with inner shapes.
    forms = dict.fromkeys(((at.inner, at.cluster), (0, 0), (0, _USUAL_CLUSTERS[0])))
    for tile in tiles:
        for each in stages:
            for inner, cluster in forms:
                yield LtKernelId(other, tile, each, 1, 0, 0, 0, inner, cluster)


@lru_cache(_MOST_REMEMBERED)
def _near_tiles(tile: int, tiles: tuple[int, ...], tile_size: TileSize) -> tuple[int, ...]:
    here = tile_size(tile)

    def distance(other: int) -> float:
        there = tile_size(other)
        if here is None or there is None:
            return math.inf
        return sum(abs(math.log2(one / two)) for one, two in zip(here, there, strict=True))

    return tuple(sorted((each for each in tiles if each != tile), key=distance))


def _near_numbers(number: int, largest: int) -> list[int]:
    return sorted((each for each in range(largest + 1) if each != number), key=lambda each: abs(each - number))


def _clusters(at: LtKernelId) -> Iterator[LtKernelId]:
    shapes = _CLUSTERS if at.cluster else _USUAL_CLUSTERS
    return (replace(at, cluster=cluster) for cluster in shapes if cluster != at.cluster)


def _splits(at: LtKernelId, schemes: list[int]) -> Iterator[LtKernelId]:
    """Yield other numbers of splits, each with the schemes; the unsplit one has none."""
    if at.red:
        yield replace(at, splitk=1, red=0)
    kept = [at.red] if at.red in schemes else []
    ordered = [*kept, *(scheme for scheme in schemes if scheme not in kept)]
    counts = sorted((each for each in _SPLITS if each != at.splitk), key=lambda each: abs(math.log2(each / _count(at))))
    for scheme in ordered:
        if at.red and scheme != at.red:
            yield replace(at, red=scheme)
        for count in (*counts, *([OWN_SPLIT] if at.splitk != OWN_SPLIT else [])):
            yield replace(at, splitk=count, red=scheme)


def _as_full(at: LtKernelId, tiles: Sequence[int], schemes: list[int], tile_size: TileSize) -> Iterator[LtKernelId]:
    """Yield other tiles with the number of splits that makes about as many blocks."""
    here = tile_size(at.tile)
    for tile in tiles:
        there = tile_size(tile)
        if here is None or there is None or not schemes or at.splitk == OWN_SPLIT:
            return
        splits = min(round(_count(at) * math.prod(there) / math.prod(here)), _SPLITS[-1])
        if splits > 1 and splits != at.splitk:
            yield replace(at, tile=tile, splitk=splits, red=at.red if at.red in schemes else schemes[0])


def _count(at: LtKernelId) -> int:
    return max(1, at.splitk)


def _spread(values: tuple[int, ...], count: int) -> Iterator[int]:
    """Yield up to `count` of the values, from all over them."""
    step = max(1, len(values) // count)
    return iter(values[::step][:count])


def _by_turns(kinds: Iterable[Iterable[LtKernelId]]) -> Iterator[LtKernelId]:
    for turn in zip_longest(*kinds):
        yield from (each for each in turn if each is not None)
