"""One result of all parts: figures, a row a shape, a short table, and each part's own rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.result import Result, render

from selection.figures import OPPONENTS, PARTS, figures_of
from selection.ours import BREADTHS

__all__ = ["flat_row", "result_of", "short_text"]

_QUESTION = "How fast are the kernels that are chosen, beside those of other libraries and tuners?"
_TIMED = (*OPPONENTS, *BREADTHS)


def result_of(
    parts: Mapping[str, Mapping[str, Mapping[str, Any]]],
    expected: Mapping[str, int],
    documents: Sequence[Mapping[str, Any]],
    shortfall: str = "",
) -> Result:
    """Return the result of merged parts; `documents` are what they were merged from."""
    fresh = parts.get("fresh", {})
    return Result(
        name="selection",
        question=_QUESTION,
        figures=figures_of(parts, expected),
        shortfall=shortfall,
        settings={
            "expected items": dict(expected),
            "missing items": {part: expected[part] - len(parts.get(part, {})) for part in PARTS},
            "runs": [
                {name: document[name] for name in ("part", "settings", "metadata")} | {"items": len(document["rows"])}
                for document in documents
            ],
            "parts": {part: list(rows.values()) for part, rows in parts.items()},
        },
        rows=[flat_row(row, fresh.get(item, {})) for item, row in parts.get("shapes", {}).items()],
    )


def flat_row(row: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a shape without inner mappings; None where a contestant took no part."""
    timed = {name: row["contestants"].get(name, {}) for name in _TIMED}
    search = timed["search"].get("us")
    return {
        "shape": row["item"],
        "bound": row["bound"],
        "roofline us": row["roofline_us"],
        **{f"{name} us": found.get("us") for name, found in timed.items()},
        **{f"{name} quartiles": _quartiles(found) for name, found in timed.items()},
        **{f"{name}/torch": found.get("over_torch") for name, found in timed.items() if name != "torch"},
        "search/first": timed["search"].get("over_first"),
        "search/first fresh": fresh.get("search_over_first"),
        "search/torch fresh": fresh.get("search_over_torch"),
        "roofline share": row["roofline_us"] / search if search else None,
        "first choice": timed["first"].get("detail"),
        "winner": timed["search"].get("detail"),
    }


def short_text(result: Result) -> str:
    """Return the result as text with the columns that matter: speeds over torch, and the share of the roofline."""
    columns = (
        "shape",
        "torch us",
        *(f"{name}/torch" for name in _TIMED if name != "torch"),
        "search/first fresh",
        "roofline share",
    )
    rows = [{_heading(name): _cell(row[name]) for name in columns} for row in result.rows]
    return render(replace(result, rows=rows))


def _heading(name: str) -> str:
    return name.removesuffix("/torch").replace("search/first fresh", "fresh").replace("roofline share", "roof")


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _quartiles(found: Mapping[str, Any]) -> str | None:
    return f"{found['low']:.4g}..{found['high']:.4g}" if "low" in found else None
