"""The figures that all parts together are judged by. Pure: rows in, figures out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.result import Figure, Goal
from harness.spread import geometric_mean

from selection.part_decode import LARGE_WEIGHT_BYTES
from selection.part_fresh import JUDGED

__all__ = ["OPPONENTS", "PARTS", "figures_of"]

Row = Mapping[str, Any]
Rows = Mapping[str, Row]

PARTS = ("shapes", "fresh", "decode", "again", "quality", "wrong")

OPPONENTS = {
    "torch": "torch",
    "first": "the first choice",
    "cupy": "CuPy",
    "jax": "JAX",
    "nvmath": "nvmath's autotune",
    "cublas": "CUBLAS_GEMM_AUTOTUNE",
    "naive": "a naive tuner",
}
"""Whom ours are compared with, and what they are called."""

_OVER_TORCH = {"search": Goal(1.08, at_least=True), "wide": Goal(1.05, at_least=True), "heuristic": None, "naive": None}
_AHEAD = {"nvmath", "cublas"}
# Without a bias these are tuned with FAMILIES=all only, which the benchmark sets.
_HALF = {"float16", "bfloat16"}
_NOT_SLOWER = Goal(0.99, at_least=True)
_SAME_WITHIN, _FOUND_SHARE = 1.01, 0.99


def figures_of(parts: Mapping[str, Rows], expected: Mapping[str, int]) -> list[Figure]:
    """Return the figures of what there is; `expected` is how many items each part should have."""
    missing = [part for part in PARTS if len(parts.get(part, {})) < expected[part]]
    figures = [Figure("parts that are not complete", len(missing), goal=Goal(0))]
    makers: dict[str, Callable[[Sequence[Row]], Iterable[Figure]]] = {
        "shapes": _of_shapes,
        "fresh": _of_fresh,
        "decode": _of_decode,
        "again": _of_again,
        "quality": _of_quality,
        "wrong": _of_wrong,
    }
    for part in PARTS:
        rows = list(parts.get(part, {}).values())
        if rows:
            figures += makers[part](rows)
    return figures


def _of_shapes(rows: Sequence[Row]) -> Iterable[Figure]:
    yield Figure("shapes compared", len(rows))
    for name, goal in _OVER_TORCH.items():
        yield from _geomean(f"{name} over torch", _quotients(rows, name, "torch"), goal)
    by_default = [row for row in rows if row["bias"] or row["dtype"] not in _HALF]
    title = f"wide over torch, the {len(by_default)} shapes that are tuned without FAMILIES=all"
    yield from _geomean(title, _quotients(by_default, "wide", "torch"), None)
    for name in _OVER_TORCH:
        yield from _geomean(f"{name} over the first choice", _quotients(rows, name, "first"), None)
    for name, title in OPPONENTS.items():
        if name not in {"torch", "first"}:
            quotients = _quotients(rows, "search", name)
            goal = Goal(1.0, at_least=True) if name in _AHEAD else None
            yield from _geomean(f"search over {title} ({len(quotients)} shapes)", quotients, goal)
    for name in ("naive", "heuristic", "wide", "search"):
        over = {row["item"]: each for row in rows for each in _quotients([row], name, "first")}
        if over:
            worst = min(over, key=lambda item: over[item])
            yield Figure(f"same process, worst shape: {name} over the first choice ({worst})", over[worst])
    shares = [row["roofline_us"] / row["contestants"]["search"]["us"] for row in rows if _has(row, "search")]
    yield from _geomean("search: share of the roofline", shares, None)


def _of_fresh(rows: Sequence[Row]) -> Iterable[Figure]:
    for name in JUDGED:
        for other in ("first", "torch"):
            key = f"{name}_over_{other}"
            judged = {row["item"]: row[key] for row in rows if key in row}
            if judged:
                worst = min(judged, key=lambda item: judged[item])
                title = f"fresh process, worst shape: {name} over {OPPONENTS[other]} ({worst})"
                yield Figure(title, judged[worst], goal=_NOT_SLOWER)
                yield from _geomean(f"fresh process: {name} over {OPPONENTS[other]}", list(judged.values()), None)
    yield Figure("fresh process: measured", max(row["measured"] for row in rows), goal=Goal(0))
    yield Figure("fresh process: calls not replayed", max(row["not_replayed"] for row in rows), goal=Goal(0))


def _of_decode(rows: Sequence[Row]) -> Iterable[Figure]:
    gains = {row["item"]: row["over_best_of_8"] for row in rows}
    yield from _geomean("decode: search over the best of 8", list(gains.values()), Goal(1.15, at_least=True))
    worst = min(gains, key=lambda item: gains[item])
    title = f"decode, worst shape: search over the best of 8 ({worst})"
    yield Figure(title, gains[worst], goal=Goal(1.0, at_least=True))
    shares = {row["item"]: row["copy_share"] for row in rows if 1e6 * row["weight_mb"] > LARGE_WEIGHT_BYTES}
    if shares:
        worst = min(shares, key=lambda item: shares[item])
        title = f"decode, weights over 100 MB: least share of the copy bandwidth ({worst})"
        yield Figure(title, shares[worst], goal=Goal(0.92, at_least=True))


def _of_again(rows: Sequence[Row]) -> Iterable[Figure]:
    same = [row["slowest_over_fastest"] <= _SAME_WITHIN for row in rows]
    title = f"fresh tunings: shapes with the same winner, or one within 1 % (of {len(rows)})"
    yield Figure(title, sum(same) / len(same), goal=Goal(0.95, at_least=True))


def _of_quality(rows: Sequence[Row]) -> Iterable[Figure]:
    found = [row["share"] >= _FOUND_SHARE for row in rows]
    title = f"search: shapes where the short one finds 99 % of the long one (of {len(rows)})"
    yield Figure(title, sum(found) / len(found), goal=Goal(0.9, at_least=True))
    yield Figure("search: longest short one, with all around it", max(row["short_took_s"] for row in rows), "s")


def _of_wrong(rows: Sequence[Row]) -> Iterable[Figure]:
    recorded = sum(row["in_file"] for row in rows)
    yield Figure("winners recorded over random problems", recorded, goal=Goal(2000, at_least=True))
    yield Figure("of them other kernels than the first choice", sum(row["replaced"] for row in rows))
    yield Figure("wrong results among them", sum(len(row["wrong"]) for row in rows), goal=Goal(0))


def _has(row: Row, name: str) -> bool:
    return "us" in row["contestants"].get(name, {})


def _quotients(rows: Sequence[Row], ours: str, theirs: str) -> list[float]:
    """Return how many times as long theirs takes, on the shapes that both have."""
    found = []
    for row in rows:
        if _has(row, ours) and _has(row, theirs):
            mine, other = row["contestants"][ours], row["contestants"][theirs]
            found.append(mine.get(f"over_{theirs}", other["us"] / mine["us"]))
    return found


def _geomean(name: str, values: Sequence[float], goal: Goal | None) -> Iterable[Figure]:
    if values:
        yield Figure(f"{name}, geomean", geometric_mean(values), goal=goal)
