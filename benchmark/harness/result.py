"""The outcome of a benchmark: figures against their goals, as a table on screen and a file on disk."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.spread import Spread

__all__ = ["Figure", "Goal", "Result", "render", "write"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure must reach."""

    limit: float
    at_least: bool = False

    def is_reached_by(self, measured: float) -> bool:
        """Return whether `measured` is on the right side of the limit, or on it."""
        return measured >= self.limit if self.at_least else measured <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value.

    Attributes
    ----------
    name : str
        What was measured.
    measured : float
        The value that is judged.
    unit : str
        Of the value; empty for counts and ratios.
    goal : Goal or None
        None for what is only shown beside.
    spread : Spread or None
        None for what was counted, not timed.
    """

    name: str
    measured: float
    unit: str = ""
    goal: Goal | None = None
    spread: Spread | None = None

    @property
    def is_reached(self) -> bool | None:
        """Return whether the goal is reached, None without one."""
        return None if self.goal is None else self.goal.is_reached_by(self.measured)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "measured": _rounded(self.measured),
            "unit": self.unit,
            "goal": None if self.goal is None else str(self.goal),
            "reached": self.is_reached,
            "spread": None
            if self.spread is None
            else {name: None if value is None else _rounded(value) for name, value in self.spread._asdict().items()},
        }


@dataclass(frozen=True, slots=True)
class Result:
    """What one benchmark found.

    Attributes
    ----------
    name : str
        Of the benchmark, and of its file.
    question : str
        What it answers.
    figures : sequence of Figure
        The answers.
    settings : mapping
        How it was measured: plain values.
    rows : sequence of mapping
        Details that the figures sum up, one mapping of plain values each, all with the same keys.
    shortfall : str
        Why a goal is missed when it is: what was tried, and what limits it.
    """

    name: str
    question: str
    figures: Sequence[Figure]
    settings: Mapping[str, object] = field(default_factory=dict)
    rows: Sequence[Mapping[str, object]] = ()
    shortfall: str = ""

    @property
    def is_reached(self) -> bool:
        """Return whether every goal is reached."""
        return all(figure.is_reached is not False for figure in self.figures)


def write(result: Result, folder: Path, metadata: Mapping[str, object]) -> Path:
    """Write the result with its metadata to `folder`/`name`.json; return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    document = {
        "benchmark": result.name,
        "question": result.question,
        "reached": result.is_reached,
        "figures": [figure.to_dict() for figure in result.figures],
        **({"shortfall": result.shortfall} if result.shortfall and not result.is_reached else {}),
        "settings": dict(result.settings),
        "rows": [{name: _rounded(value) for name, value in row.items()} for row in result.rows],
        "metadata": dict(metadata),
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def render(result: Result) -> str:
    """Return the result as plain text: details first, the figures last."""
    parts = [result.question]
    if result.rows:
        head = list(result.rows[0])
        parts.append(_table(head, [[_shown(row[name]) for name in head] for row in result.rows]))
    lines = [
        [
            figure.name,
            f"{_shown(figure.measured)} {figure.unit}".rstrip(),
            "-" if figure.spread is None or figure.spread.low is None else _interval(figure.spread),
            "-" if figure.goal is None else f"{figure.goal} {figure.unit}".rstrip(),
            {None: "-", True: "yes", False: "NO"}[figure.is_reached],
        ]
        for figure in result.figures
    ]
    parts.append(_table(["what", "measured", "95 % interval", "goal", "reached"], lines))
    return "\n\n".join(parts)


def _interval(spread: Spread) -> str:
    return f"{_shown(spread.low)} .. {_shown(spread.high)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _rounded(value: object) -> object:
    # Five digits are more than any of these clocks can say, and keep the files readable.
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
