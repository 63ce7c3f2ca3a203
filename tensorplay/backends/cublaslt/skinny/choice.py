"""Which configurations are possible for a shape, which are promising, and which lie one step away from one."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tensorplay.backends.cublaslt.skinny.configuration import RUNS, Configuration, has_ring
from tensorplay.backends.cublaslt.skinny.estimate import estimate, geometry_cost
from tensorplay.backends.cublaslt.skinny.shape import Shape
from tensorplay.errors import KernelUnavailableError

__all__ = ["is_possible", "neighbouring", "promising", "reasonable", "varied"]

_WARP = 32
_SPLITS = (1, 2, 4, 8)
_STAGES = (1, 2, 3, 4, 6, 8)
_DEPTH_WARPS = (1, 2, 4, 8, 16)
_ROW_WARPS = (1, 2, 4)
_MATRIX_ROWS = (8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 144)
_ADDING_ROWS = (1, 2, 4, 8)
_SPANS = (1, 2, 4)
# Beyond so many columns of half types multiply-adds cannot keep up with the memory.
_MOST_ADDED = 4
_REGISTERS, _RING = 1, 2
# Of those that cut the weight up alike so many are offered, before the best of another kind so many, and nobody who is
# so many times slower than the fastest, all by the model.
_MOST_ALIKE, _LEADING, _BAR = 2, 2, 1.3
# Of each kind, as many ways to cut the weight up are looked at more closely: a tuning pass has no time for all.
_MOST_GEOMETRIES = 20


class Geometry(NamedTuple):
    """How the weight is cut up: among blocks, and among the rows of warps in a block."""

    mma: int
    rows: int
    row_warps: int
    split: int

    @property
    def tile(self) -> int:
        """Return the rows of a block."""
        return self.rows * self.row_warps


def is_possible(configuration: Configuration, shape: Shape) -> bool:
    """Return whether there is such a kernel for the shape."""
    try:
        configuration.check(shape)
    except KernelUnavailableError:
        return False
    return True


def promising(shape: Shape, *, multiprocessors: int, clusters: bool) -> list[Configuration]:
    """Return configurations for a shape by the estimate of a small model, the best first."""
    found: list[Configuration] = []
    for mma in _kinds(shape):
        cut = list(_geometries(mma, shape, _SPLITS if clusters else (1,)))
        cut.sort(key=lambda each: geometry_cost(shape, each.tile, each.split, multiprocessors))
        found += _built(cut[:_MOST_GEOMETRIES], shape, shape.weight_alignment)
    return sorted(found, key=lambda each: estimate(each, shape, multiprocessors))


def varied(shape: Shape, *, multiprocessors: int, clusters: bool) -> Iterator[Configuration]:
    """Yield the fastest by the model, but few that cut the weight up in the same way, and early the best of each kind.

    The model knows the cut best, and it was fitted to one device: on others another kind may be the fastest. What it
    thinks much slower than the fastest is left out.
    """
    ranked = promising(shape, multiprocessors=multiprocessors, clusters=clusters)
    if shape.is_along and has_ring(shape):
        # The same instructions with fewer bytes under way.
        ranked = [each for each in ranked if each.mma != _REGISTERS]
    estimates = {each: estimate(each, shape, multiprocessors) for each in ranked}
    alike = Counter[tuple[int, ...]]()
    chosen: list[Configuration] = []
    for each in ranked:
        cut = each.mma, each.tile, each.split, each.threads
        alike[cut] += 1
        if alike[cut] <= _MOST_ALIKE and estimates[each] <= _BAR * estimates[ranked[0]]:
            chosen.append(each)
    leading = chosen[:_LEADING]
    best_of_kinds = {each.mma: each for each in reversed(chosen)}
    others = [each for mma, each in best_of_kinds.items() if mma not in {lead.mma for lead in leading}]
    yield from dict.fromkeys([*leading, *others, *chosen])


def reasonable(shape: Shape) -> Iterator[Configuration]:
    """Yield the configurations that use the widest loads, and all rings, without those that nothing speaks for."""
    for mma in _kinds(shape):
        for vec in RUNS if mma == _RING else (shape.weight_alignment,):
            yield from _built(_geometries(mma, shape, _SPLITS), shape, vec)


def neighbouring(configuration: Configuration, shape: Shape) -> Iterator[Configuration]:
    """Yield the configurations in which one thing is one step less or more."""
    rows, row_warps = configuration.rows, configuration.tile // configuration.rows
    depth_warps = configuration.depth_warps
    seen = {configuration}
    for changed in (
        *({"mma": each} for each in _beside(configuration.mma, (0, 1, 2))),
        *({"rows": each} for each in _beside(rows, _rows(configuration.mma, configuration.vec, shape))),
        *({"row_warps": each} for each in _beside(row_warps, _ROW_WARPS)),
        *({"depth_warps": each} for each in _beside(depth_warps, _DEPTH_WARPS)),
        *({"split": each} for each in _beside(configuration.split, _SPLITS)),
        *({"stages": each} for each in _beside(configuration.stages, _STAGES)),
        *({"vec": each} for each in _beside(configuration.vec, RUNS if configuration.mma == _RING else (2, 4, 8, 16))),
    ):
        tall, wide, deep = (
            changed.get(name, now)
            for name, now in (("rows", rows), ("row_warps", row_warps), ("depth_warps", depth_warps))
        )
        made = replace(
            configuration,
            mma=changed.get("mma", configuration.mma),
            tile=tall * wide,
            rows=tall,
            threads=_WARP * wide * deep,
            split=changed.get("split", configuration.split),
            stages=changed.get("stages", configuration.stages),
            vec=changed.get("vec", configuration.vec),
        )
        if made not in seen and is_possible(made, shape):
            seen.add(made)
            yield made


def _kinds(shape: Shape) -> tuple[int, ...]:
    """Return the values of `mma` that may be worth while, the best first."""
    if shape.dtype.itemsize != 2:
        return (0,)
    matrix = (2, 1) if has_ring(shape) else (1,)
    return (*matrix, 0) if shape.columns <= _MOST_ADDED else matrix


def _geometries(mma: int, shape: Shape, splits: tuple[int, ...]) -> Iterator[Geometry]:
    for rows in _rows(mma, shape.weight_alignment, shape):
        for row_warps in _ROW_WARPS:
            for split in splits:
                yield Geometry(mma, rows, row_warps, split)


def _built(geometries: Iterable[Geometry], shape: Shape, vec: int) -> Iterator[Configuration]:
    for mma, rows, row_warps, split in geometries:
        for depth_warps in _DEPTH_WARPS:
            for stages in _STAGES:
                made = Configuration(
                    mma=mma,
                    tile=rows * row_warps,
                    rows=rows,
                    split=split,
                    vec=vec,
                    stages=stages,
                    threads=_WARP * row_warps * depth_warps,
                )
                if is_possible(made, shape):
                    yield made


def _rows(mma: int, vec: int, shape: Shape) -> tuple[int, ...]:
    if shape.is_along:
        return _MATRIX_ROWS if mma else _ADDING_ROWS
    one = (8 if mma else _WARP) * max(vec, 4) // shape.dtype.itemsize
    return tuple(one * each for each in _SPANS)


def _beside(value: int, ladder: tuple[int, ...]) -> Iterator[int]:
    lower = [each for each in ladder if each < value]
    upper = [each for each in ladder if each > value]
    yield from lower[-1:]
    yield from upper[:1]
