"""The numbers of docs/selection.md: tables made from the committed result, between markers in the page. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["NOT_MEASURED", "filled"]

Document = Mapping[str, Any]

NOT_MEASURED = "Not measured yet on this build."

_MARKED = re.compile(r"(<!-- begin (picture|figures|shapes|machine) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
_SPEEDS = {
    "first": "first choice",
    "cupy": "CuPy",
    "jax": "JAX",
    "nvmath": "nvmath",
    "cublas": "cuBLAS autotune",
    "naive": "naive",
    "heuristic": "heuristic",
    "wide": "wide",
    "search": "search",
}


def filled(page: str, document: Document | None) -> str:
    """Return the page with what is between its markers made from a result; None where there is no result yet."""
    makers = {"picture": _picture, "figures": _figures, "shapes": _shapes, "machine": _machine}

    def replaced(match: re.Match[str]) -> str:
        text = NOT_MEASURED if document is None else makers[match[2]](document)
        return f"{match[1]}\n{text}\n\n{match[3]}"

    return _MARKED.sub(replaced, page)


def _picture(document: Document) -> str:
    return f"![Speed of each choice over torch on {len(document['rows'])} shapes](images/selection.png)"


def _figures(document: Document) -> str:
    rows = [
        [figure["name"], _number(figure["measured"], figure["unit"]), figure["goal"] or "", _word(figure["reached"])]
        for figure in document["figures"]
    ]
    table = _table(["What", "Measured", "Goal", "Reached"], rows)
    return f"{table}\n\n{document['shortfall']}" if document.get("shortfall") else table


def _shapes(document: Document) -> str:
    head = ["Shape", "torch, us", *_SPEEDS.values(), "fresh", "roofline"]
    rows = [
        [
            row["shape"],
            _number(row["torch us"]),
            *(_ratio(row[f"{name}/torch"]) for name in _SPEEDS),
            _ratio(row["search/first fresh"]),
            _percent(row["roofline share"]),
        ]
        for row in document["rows"]
    ]
    return _table(head, rows)


def _machine(document: Document) -> str:
    facts = document["metadata"]
    libraries, clocks = facts.get("libraries", {}), facts.get("clocks_before", {})
    packages = {**libraries.get("packages", {}), **libraries.get("further packages", {})}
    parts = [
        f"{libraries.get('device', clocks.get('name', 'unknown device'))}",
        f"driver {clocks['driver']}" if "driver" in clocks else "",
        str(libraries.get("cublaslt_library", "")),
        *(f"{name} {version}" for name, version in sorted(packages.items())),
        str(facts["date"])[:10],
    ]
    return "Measured on: " + ", ".join(part for part in parts if part) + "."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.4g} {unit}".rstrip()


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _word(reached: bool | None) -> str:
    return {None: "", True: "yes", False: "**no**"}[reached]
