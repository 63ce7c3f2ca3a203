"""Explanations: how the winner of one signature was chosen, as one line of JSON. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tensorplay.database.explained_parts import (
    MOST_FACTS,
    Fact,
    Facts,
    candidate_of,
    confirmation_of,
    encodable,
    histogram_in,
    is_usual,
    numerical_check_in,
)
from tensorplay.database.record import check_signature
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature
from tensorplay.locks import imported

__all__ = [
    "LONGEST_LINE",
    "MOST_TIMED",
    "MOST_UNTIMED",
    "Explanation",
    "Fact",
    "Facts",
    "explanation_of",
    "format_explanation",
    "parse_explanation",
]

MOST_TIMED = 48
"""Candidates of one explanation that were timed, the fastest of them."""

MOST_UNTIMED = 16
"""Candidates of one explanation that were dropped before anything was timed."""

LONGEST_LINE = 1 << 18
"""Bytes of a line; a longer one is no explanation."""

_LONGEST_TEXT = 160
_FACTS = ("confirmation", "search", "numerical_check")
_PARTS = (*_FACTS, "clocks", "histogram")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a measurement found, as a file can hold it.

    Every number is finite, and every text short enough; what it is made from is checked by `explanation_of` and
    `parse_explanation`.

    Attributes
    ----------
    op, params : str
        The signature.
    build : str
        Digest of the validators of the build that measured.
    verdict : str
        Why the winner was selected.
    winner : str
        Kernel id.
    winner_ms, first_choice_ms : float or None
        None where nothing was timed.
    candidates : tuple of mapping
        Facts about each, the first choice first: all that a `CandidateReport` has, None where it is not known, and
        further ones.
    left_out : int
        How many more candidates there were.
    confirmation : mapping or None
        Facts about the final comparison of winner and first choice, all that a `Confirmation` has among them.
    search : mapping or None
        Facts about how far a search for more candidates went.
    clocks : mapping or None
        Clocks of the device right after the measurement, in MHz.
    histogram : mapping or None
        The samples of the confirmation, as a `SampleHistogram` has them.
    numerical_check : mapping or None
        Facts about the check of the winner's result, as a `NumericalCheck` has them.
    """

    op: str
    params: str
    build: str
    verdict: str
    winner: str
    winner_ms: float | None
    first_choice_ms: float | None
    candidates: tuple[Facts, ...]
    left_out: int
    confirmation: Facts | None
    search: Facts | None
    clocks: Mapping[str, int] | None
    histogram: Mapping[str, Any] | None
    numerical_check: Facts | None

    @property
    def signature(self) -> Signature:
        """Return the key of the problem."""
        return Signature(self.op, self.params)

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain JSON values, in the order of the line."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {
            "candidates": [dict(candidate) for candidate in self.candidates],
            **{name: dict(plain[name]) for name in _PARTS if plain[name] is not None},
        }


def explanation_of(
    signature: Signature, build: str, report: Mapping[str, object], clocks: Mapping[str, int] | None = None
) -> Explanation:
    """Return what is kept of a measurement's report, given as plain values; candidates beyond the most are counted.

    Raises
    ------
    RecordError
        When the signature is none, or the report lacks what an explanation has.
    """
    given = [_facts(candidate) for candidate in _items(report.get("candidates"))]
    kept = _kept(given, report.get("winner"))
    return _explanation(
        {
            **report,
            "op": signature.op,
            "params": signature.params,
            "build": build,
            "candidates": kept,
            "left_out": len(given) - len(kept),
            **{name: _facts(report[name]) for name in _FACTS if report.get(name)},
            "clocks": dict(clocks) if clocks else None,
            **{name: _fact(report.get(name)) for name in ("winner_ms", "first_choice_ms")},
        }
    )


def format_explanation(explanation: Explanation) -> str:
    """Return the line, its end included: ASCII, and JSON to the letter, so without `NaN` and `Infinity`."""
    json = imported("json")
    text: str = json.dumps(explanation.to_dict(), separators=(",", ":"), allow_nan=False)
    return text + "\n"


def parse_explanation(line: bytes) -> Explanation:
    """Return what a line says; `RecordError`, with the reason, when it is no explanation."""
    if len(line) > LONGEST_LINE:
        raise RecordError(f"a line of {len(line)} bytes; allowed: {LONGEST_LINE}")
    try:
        found = imported("json").loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON: {str(error)[:_LONGEST_TEXT]}") from None
    if not isinstance(found, dict):
        raise RecordError(f"a line holds a {type(found).__name__}; allowed: an object")
    return _explanation(found)


def _explanation(found: Mapping[str, Any]) -> Explanation:
    """Return the fields, checked; others, of a later version, are passed over."""
    candidates = _items(found.get("candidates"))
    explanation = Explanation(
        op=_text(found, "op"),
        params=_text(found, "params"),
        build=_text(found, "build"),
        verdict=_text(found, "verdict"),
        winner=_text(found, "winner"),
        winner_ms=_number(found, "winner_ms"),
        first_choice_ms=_number(found, "first_choice_ms"),
        candidates=tuple(candidate_of(_checked(candidate, "a candidate", ("kernel",))) for candidate in candidates),
        left_out=int(_number(found, "left_out") or 0),
        confirmation=_optional(
            found, "confirmation", lambda value: confirmation_of(_checked(value, "the confirmation", ()))
        ),
        search=_optional(found, "search", lambda value: _checked(value, "the search", ())),
        clocks=_optional(found, "clocks", _clocks),
        histogram=histogram_in(found.get("histogram")),
        numerical_check=numerical_check_in(found.get("numerical_check")),
    )
    check_signature(explanation.signature)
    return explanation


def _kept(candidates: list[dict[str, Fact]], winner: object) -> list[dict[str, Fact]]:
    """Return those that a line has room for, in their order: first choice, winner, the fastest, some untimed."""
    times = {place: _time_ms(facts) for place, facts in enumerate(candidates)}
    timed = sorted((time, place) for place, time in times.items() if time is not None)
    places = {place for _, place in timed[:MOST_TIMED]}
    places.update([place for place, time in times.items() if time is None][:MOST_UNTIMED])
    places.update(place for place, facts in enumerate(candidates) if place == 0 or facts.get("kernel") == winner)
    return [candidates[place] for place in sorted(places)]


def _time_ms(facts: Facts) -> float | None:
    """Return what a candidate is ordered by: its careful time, or its screening's."""
    for name in ("median_ms", "screened_ms"):
        value = facts.get(name)
        if isinstance(value, int | float):
            return float(value)
    return None


def _facts(values: object) -> dict[str, Fact]:
    """Return an object's values as facts, whatever they are."""
    if not isinstance(values, Mapping):
        raise RecordError(f"a {type(values).__name__} in a report; allowed: named facts")
    return {encodable(str(name)[:_LONGEST_TEXT]): _fact(value) for name, value in list(values.items())[:MOST_FACTS]}


def _fact(value: object) -> Fact:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        # What a number that is none would mean is "not known".
        return value if is_usual(value) else None
    text = encodable(str(value))
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no number")


def _items(values: object) -> list[Any]:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise RecordError(f"candidates are a {type(values).__name__}; allowed: a list")
    return list(values)


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value or len(value) > 4 * _LONGEST_TEXT:
        raise RecordError(f"{name} is no short text")
    return encodable(value)


def _number(found: Mapping[str, Any], name: str) -> float | None:
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_usual(value) or value < 0:
        raise RecordError(f"{name} is no number from 0 up")
    return value


def _checked(values: object, what: str, needed: tuple[str, ...]) -> dict[str, Fact]:
    if not isinstance(values, dict) or len(values) > MOST_FACTS or not all(values.get(name) for name in needed):
        raise RecordError(f"{what} is no object of facts")
    for name, value in values.items():
        is_text = isinstance(value, str)
        if not (value is None or is_text or (isinstance(value, int | float) and is_usual(value))):
            raise RecordError(f"{name[:_LONGEST_TEXT]!r} of {what} is no text, finite number or null")
    if not all(isinstance(values[name], str) for name in needed):
        raise RecordError(f"{what} has no {needed[0]}")
    return {encodable(name): encodable(value) if isinstance(value, str) else value for name, value in values.items()}


def _clocks(values: object) -> dict[str, int]:
    if not isinstance(values, dict) or not all(type(value) is int and is_usual(value) for value in values.values()):
        raise RecordError("clocks are no object of whole numbers")
    return values


def _optional(found: Mapping[str, Any], name: str, check: Callable[[object], T]) -> T | None:
    value = found.get(name)
    return None if value is None else check(value)
