"""The parts of an explanation that pages and programs rely on the shape of; what does not fit is unknown. Pure."""

from collections.abc import Mapping
from typing import Any, TypeGuard

__all__ = [
    "MOST_BINS",
    "MOST_FACTS",
    "Fact",
    "Facts",
    "candidate_of",
    "confirmation_of",
    "encodable",
    "histogram_in",
    "is_usual",
    "numerical_check_in",
]

MOST_FACTS = 16
"""Facts about one thing; more are left out."""

MOST_BINS = 64
"""Bins of a histogram; one of more is none."""

_LARGEST = 1e15
_LONGEST_REASON = 160
_TIMES = ("median_ms", "quartile_low_ms", "quartile_high_ms", "screened_ms")
_CONFIRMED = ("pairs", "first_choice_ms", "winner_ms", "gain", "gain_low", "gain_high")
_OUTCOMES = frozenset({"passed", "reference", "off"})
_ERRORS = ("max_abs_error", "max_rel_error", "atol", "rtol")

Fact = str | int | float | None
Facts = Mapping[str, Fact]


def is_usual(value: float) -> bool:
    """Return whether a number is finite, and no larger than any that is measured."""
    # False for what is no number, and exact for integers of any size.
    return -_LARGEST <= value <= _LARGEST


def encodable(text: str) -> str:
    """Return a text that has UTF-8: JSON can hold halves of a pair of surrogates, which no page can."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def candidate_of(facts: Facts) -> dict[str, Fact]:
    """Return what is known of a candidate, with all that is shown of one."""
    dropped = facts.get("dropped")
    shown: dict[str, Fact] = {
        "kernel": facts["kernel"],
        "samples": _count(facts.get("samples")) or 0,
        **{name: _size(facts.get(name)) for name in _TIMES},
        "dropped": dropped if isinstance(dropped, str) else None,
    }
    return _limited(shown, facts)


def confirmation_of(facts: Facts) -> dict[str, Fact] | None:
    """Return what is known of the confirmation; None when it lacks a number that is shown of one."""
    margin = facts.get("margin", 0.0)
    shown: dict[str, Fact] = {name: facts.get(name) for name in _CONFIRMED} | {"margin": margin}
    is_whole = _count(shown["pairs"]) is not None and all(map(_is_number, shown.values()))
    return _limited(shown, facts) if is_whole else None


def numerical_check_in(value: object) -> dict[str, Fact] | None:
    """Return what a line says of the check of the winner's result; None where it says nothing that is known."""
    if not isinstance(value, Mapping):
        return None
    outcome, reason = value.get("outcome"), value.get("reason")
    if not (isinstance(outcome, str) and outcome in _OUTCOMES):
        return None
    return {
        "outcome": outcome,
        "reason": encodable(reason)[:_LONGEST_REASON] if isinstance(reason, str) else "",
        **{name: _size(value.get(name)) for name in _ERRORS},
        **{name: _count(value.get(name)) or 0 for name in ("compared", "wrong")},
    }


def histogram_in(value: object) -> dict[str, Any] | None:
    """Return what a line says of the samples of the confirmation; None where that is not whole."""
    if not isinstance(value, Mapping):
        return None
    low, high = _size(value.get("low_ms")), _size(value.get("high_ms"))
    sides = {name: _spread(value.get(name)) for name in ("first_choice", "winner")}
    if low is None or high is None or low > high or not all(sides.values()):
        return None
    bins = {len(side["counts"]) for side in sides.values() if side}
    return {"low_ms": low, "high_ms": high, **sides} if len(bins) == 1 else None


def _spread(value: object) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    counts, below, above = value.get("counts"), _count(value.get("below")), _count(value.get("above"))
    if not isinstance(counts, list) or not 0 < len(counts) <= MOST_BINS or None in map(_count, counts):
        return None
    return None if below is None or above is None else {"counts": list(counts), "below": below, "above": above}


def _limited(shown: dict[str, Fact], facts: Facts) -> dict[str, Fact]:
    """Return facts with further ones, of a later version, as far as there is room for them."""
    further = [(name, value) for name, value in facts.items() if name not in shown]
    return shown | dict(further[: MOST_FACTS - len(shown)])


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _size(value: object) -> int | float | None:
    return value if _is_number(value) and is_usual(value) and value >= 0 else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else None
