"""An explanation as people read it: pure functions from it to lines and cells of printable text."""

import math
from collections.abc import Iterator, Mapping, Sequence

from tensorplay.cli.render import MISSING, bar, count, duration, printable
from tensorplay.cli.table import Column
from tensorplay.database.explanation import Explanation, Facts

__all__ = ["CANDIDATE_COLUMNS", "OVERVIEW_COLUMNS", "candidate_rows", "facts_of", "overview_row"]

OVERVIEW_COLUMNS = (
    Column("verdict"),
    Column("winner", is_whole=True),
    Column("time", is_number=True),
    Column("gain", is_number=True),
    Column("pairs", is_number=True),
    Column("candidates", is_number=True),
)
CANDIDATE_COLUMNS = (
    Column("kernel", is_whole=True),
    Column("time", is_number=True),
    Column("quartiles", is_number=True),
    Column("samples", is_number=True),
    Column("screened", is_number=True),
    Column("speed"),
    Column("why not"),
)

_TIMES = ("median_ms", "screened_ms")
_BAR_WIDTH = 16
_LONGEST_REASON = 112


def overview_row(explanation: Explanation) -> list[str]:
    """Return what a row says of one signature, beside the signature."""
    confirmation = explanation.confirmation or {}
    cells = [
        explanation.verdict,
        explanation.winner,
        duration(explanation.winner_ms),
        _share(confirmation, "gain"),
        _whole(confirmation, "pairs"),
        str(len(explanation.candidates) + explanation.left_out),
    ]
    return [printable(cell) for cell in cells]


def facts_of(explanation: Explanation, recorded: str | None) -> Iterator[str]:
    """Yield what is known beside the candidates; `recorded` is the kernel in the results file, None without one."""
    times = f"{duration(explanation.winner_ms)}, the first choice {duration(explanation.first_choice_ms)}"
    yield f"verdict: {explanation.verdict}"
    yield f"selected: {explanation.winner}, {times}"
    if recorded is not None and recorded != explanation.winner:
        yield f"recorded: {recorded}, so that the winner was set by hand since, or could not be timed"
    if explanation.confirmation is not None:
        yield f"confirmation: {_confirmation(explanation.confirmation)}"
    if explanation.numerical_check is not None:
        yield f"numerical check: {_check(explanation.numerical_check)}"
    if explanation.search is not None:
        yield "search: " + ", ".join(f"{name} {_plain(value)}" for name, value in explanation.search.items())
    if explanation.clocks:
        yield "clocks: " + ", ".join(f"{name} {mhz} MHz" for name, mhz in explanation.clocks.items())


def _check(facts: Facts) -> str:
    error = _number(facts, "max_abs_error")
    off_by = f", off by at most {error:.3g}" if error else ""
    return f"{facts['outcome']}, {facts['reason']}{off_by}"


def candidate_rows(explanation: Explanation, *, blocks: bool) -> list[list[str]]:
    """Return a row for each candidate: the selected one, then by time, then those that were not timed.

    The bars show speed, the fastest filling the width, by careful times, or by the screening's for those that have
    no other; drawn in `blocks` where the output has letters for them.
    """
    fastest = {name: _fastest(explanation.candidates, name) for name in _TIMES}
    ordered = sorted(explanation.candidates, key=lambda facts: _order(facts, explanation.winner))
    return [_candidate_row(facts, explanation, fastest, blocks=blocks) for facts in ordered]


def _candidate_row(facts: Facts, explanation: Explanation, fastest: Mapping[str, float], *, blocks: bool) -> list[str]:
    known = next((name for name in _TIMES if _positive(facts, name)), None)
    share = fastest[known] / (_positive(facts, known) or 1.0) if known else 0.0
    low, high = _number(facts, "quartile_low_ms"), _number(facts, "quartile_high_ms")
    cells = [
        str(facts["kernel"]),
        duration(_number(facts, "median_ms")),
        MISSING if low is None or high is None else f"{duration(low)} to {duration(high)}",
        _whole(facts, "samples"),
        duration(_number(facts, "screened_ms")),
        bar(share, _BAR_WIDTH, blocks=blocks),
        _reason(facts, explanation),
    ]
    return [printable(cell, _LONGEST_REASON) for cell in cells]


def _reason(facts: Facts, explanation: Explanation) -> str:
    named = "first choice" if facts is explanation.candidates[0] else ""
    if facts["kernel"] == explanation.winner:
        return ": ".join(filter(None, ("selected", named)))
    return ": ".join(filter(None, (named, str(facts.get("dropped") or ""))))


def _order(facts: Facts, winner: str) -> tuple[bool, float, float]:
    # Readings of the screening are not comparable with careful times: it drops what is slow, so it comes behind.
    median, screened = (_positive(facts, name) or math.inf for name in _TIMES)
    return facts["kernel"] != winner, median, screened


def _confirmation(facts: Facts) -> str:
    parts = [count(int(_number(facts, "pairs") or 0), "pair")]
    parts.append(f"gain {_share(facts, 'gain')} ({_share(facts, 'gain_low')} to {_share(facts, 'gain_high')})")
    if "margin" in facts:
        parts.append(f"needed {_share(facts, 'margin')}")
    first, winner = duration(_number(facts, "first_choice_ms")), duration(_number(facts, "winner_ms"))
    return ", ".join([*parts, f"first choice {first} against {winner}"])


def _fastest(candidates: Sequence[Facts], name: str) -> float:
    return min(filter(None, (_positive(facts, name) for facts in candidates)), default=0.0)


def _positive(facts: Facts, name: str) -> float | None:
    value = _number(facts, name)
    return value if value is not None and value > 0 else None


def _number(facts: Facts, name: str) -> float | None:
    value = facts.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(facts: Facts, name: str) -> str:
    value = _number(facts, name)
    return MISSING if value is None else f"{value:.0f}"


def _share(facts: Facts, name: str) -> str:
    value = _number(facts, name)
    return MISSING if value is None else f"{value:+.1%}"


def _plain(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
