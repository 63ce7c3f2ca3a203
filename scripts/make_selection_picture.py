#!/usr/bin/env python3
"""Draw docs/images/selection.png from benchmark/results/selection.json, and put its numbers into docs/selection.md.

Needs matplotlib, which nothing else here does: `pip install matplotlib`.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmark"))

RESULT = ROOT / "benchmark" / "results" / "selection.json"
PAGE = ROOT / "docs" / "selection.md"
PICTURE = ROOT / "docs" / "images" / "selection.png"

# Whose speed is drawn, in which colour and shape; ours last, so that they lie on top. Told apart without colour too.
SERIES = {
    "first": ("cuBLASLt's first choice", "#8a8a8a", "|"),
    "naive": ("naive tuner", "#d55e00", "x"),
    "nvmath": ("nvmath autotune", "#cc79a7", "^"),
    "cublas": ("CUBLAS_GEMM_AUTOTUNE", "#e69f00", "v"),
    "cupy": ("CuPy", "#56b4e9", "<"),
    "jax": ("JAX", "#f0c000", ">"),
    "wide": ("TensorPlay, wide", "#009e73", "s"),
    "search": ("TensorPlay, search", "#0047ab", "o"),
}
SLOWEST, FASTEST = 0.5, 2.0
ROW_INCHES = 0.19


def main() -> None:
    """Fill the page, then draw the picture, if there is a result."""
    document = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else None
    page = import_module("selection.page")
    PAGE.write_text(page.filled(PAGE.read_text(encoding="utf-8"), document), encoding="utf-8")
    if document is None:
        raise SystemExit(f"there is no {RESULT.relative_to(ROOT)}: run benchmark/bench_selection.py on a GPU")
    draw(document["rows"], PICTURE)


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw speeds over torch, one line a shape, and beside them how near torch and ours are to the roofline."""
    try:
        matplotlib = import_module("matplotlib")
    except ImportError:
        raise SystemExit("matplotlib is not installed: pip install matplotlib") from None
    matplotlib.use("Agg")
    plots = import_module("matplotlib.pyplot")
    figure, (speeds, shares) = plots.subplots(
        1, 2, sharey=True, figsize=(12, 2.2 + ROW_INCHES * len(rows)), width_ratios=(3, 1), layout="constrained"
    )
    places = range(len(rows))
    _draw_speeds(speeds, rows, places)
    _draw_shares(shares, rows, places)
    speeds.set_yticks(list(places), [str(row["shape"]) for row in rows], fontsize=7)
    speeds.set_ylim(len(rows) - 0.5, -0.5)
    figure.legend(loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    # No version or date inside: the same numbers give the same file.
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plots.close(figure)


def _draw_speeds(axes: Any, rows: Sequence[Mapping[str, Any]], places: Sequence[int]) -> None:
    for name, (label, colour, marker) in SERIES.items():
        found = [(row[f"{name}/torch"], place) for row, place in zip(rows, places, strict=True)]
        drawn = [(min(max(value, SLOWEST), FASTEST), place) for value, place in found if value is not None]
        if drawn:
            axes.scatter(*zip(*drawn, strict=True), label=label, color=colour, marker=marker, s=22, linewidths=1.1)
    axes.axvline(1.0, color="#444444", linewidth=0.8)
    axes.set_xscale("log", base=2)
    ticks = (0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(SLOWEST * 0.97, FASTEST * 1.03)
    axes.set_xlabel("speed over torch's own GEMM (right is faster; beyond the edge is drawn on it)")
    axes.grid(axis="both", linewidth=0.3)


def _draw_shares(axes: Any, rows: Sequence[Mapping[str, Any]], places: Sequence[int]) -> None:
    for name, colour, marker in (("torch", "#8a8a8a", "|"), ("search", "#0047ab", "o")):
        drawn = [
            (100 * row["roofline us"] / row[f"{name} us"], place)
            for row, place in zip(rows, places, strict=True)
            if row[f"{name} us"] is not None
        ]
        if drawn:
            axes.scatter(*zip(*drawn, strict=True), color=colour, marker=marker, s=22, linewidths=1.1)
    axes.axvline(100, color="#444444", linewidth=0.8)
    axes.set_xlim(left=0)
    axes.set_xlabel("% of the roofline: | torch, o search")
    axes.grid(axis="both", linewidth=0.3)


if __name__ == "__main__":
    main()
