"""What a measurement found, as plain values: what a log, a file or a page shows of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from tensorplay.measure.histogram import SampleHistogram

__all__ = [
    "UNDECIDED",
    "CandidateReport",
    "CheckOutcome",
    "Confirmation",
    "NumericalCheck",
    "SearchReport",
    "SelectionReport",
    "Verdict",
]


class Verdict(StrEnum):
    """Why the selected kernel was selected; all but `WINNER` select the first choice."""

    WINNER = "winner"
    """A candidate beat the first choice in the confirmation, by the margin and outside the noise."""

    FIRST_CHOICE = "first choice"
    """Nothing beat it: nobody in the race gained the margin, or the confirmation shows that the leader is no faster."""

    WITHIN_NOISE = "within noise"
    """The leader's gain is below the margin, or not distinguishable from the noise."""

    UNSTABLE = "unstable"
    """Times scattered too much to say anything, or the leader is often slow in a way that the median hides."""

    INSUFFICIENT_BUDGET = "insufficient budget"
    """Something looked faster or was left out, and too few pairs fitted to tell: into `max_tuning_duration_ms` or
    `max_tuning_samples`, or before the deadline."""

    ALONE = "alone"
    """No other candidate was there, or none could run."""

    NOT_MEASURED = "not measured"
    """The first choice could not be timed, so nothing was compared."""


UNDECIDED = frozenset({Verdict.UNSTABLE, Verdict.INSUFFICIENT_BUDGET, Verdict.NOT_MEASURED})
"""Verdicts that select the first choice without having compared it with anything."""


class CheckOutcome(StrEnum):
    """What is known of the numbers that the selected kernel computes; one that is wrong is never selected."""

    PASSED = "passed"
    """Its result was compared with the first choice's before anything was timed, and agrees."""

    REFERENCE = "reference"
    """It is the first choice, which the others are compared with."""

    OFF = "off"
    """The check was turned off: nobody has compared it."""


@dataclass(frozen=True, slots=True)
class CandidateReport:
    """What was measured of one candidate; times in milliseconds.

    Attributes
    ----------
    kernel : str
        Its kernel id.
    samples : int
        Careful samples (race and confirmation) that median and quartiles are made of.
    median_ms, quartile_low_ms, quartile_high_ms : float or None
        None without samples.
    screened_ms : float or None
        The last reading of the screening; None when it was not read.
    dropped : str or None
        Why it was not selected; None for the selected one.
    """

    kernel: str
    samples: int
    median_ms: float | None
    quartile_low_ms: float | None
    quartile_high_ms: float | None
    screened_ms: float | None
    dropped: str | None

    @classmethod
    def untimed(cls, kernel: str, dropped: str) -> Self:
        """Return the report of a candidate that was dropped before anything was timed."""
        return cls(kernel, 0, None, None, None, None, dropped)

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The fresh comparison of a finalist with the first choice.

    Attributes
    ----------
    pairs : int
        Pairs of samples that were taken.
    first_choice_ms, winner_ms : float
        Medians of the two, the finalist being called winner whether or not it won.
    gain : float
        Median share by which the first choice takes longer; 0.05 is 5 %, negative when the finalist is slower.
    gain_low, gain_high : float
        Bounds of the gain, each one-sided with 99 % confidence; of fewer than seven pairs, the least and the largest.
    margin : float
        What the gain had to be at least: `min_gain`, or more where the pairs scatter.
    """

    pairs: int
    first_choice_ms: float
    winner_ms: float
    gain: float
    gain_low: float
    gain_high: float
    margin: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class NumericalCheck:
    """What the numerical check found of the selected kernel.

    Attributes
    ----------
    outcome : CheckOutcome
        Whether it was compared.
    reason : str
        What with, in words.
    max_abs_error, max_rel_error : float or None
        Largest over all elements; None where no number says it: on a device that compares results by itself, only
        whether they are within the bound is known, and an error of what should be 0 has no size relative to it.
    atol, rtol : float or None
        The bound: an element may be off by `atol` and `rtol` times what is expected. None where nothing was compared.
    compared, wrong : int
        Candidates of the same measurement whose results were compared, and those of them that did not pass.
    """

    outcome: CheckOutcome
    reason: str
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    atol: float | None = None
    rtol: float | None = None
    compared: int = 0
    wrong: int = 0

    @classmethod
    def off(cls) -> Self:
        """Return what is known without a check."""
        return cls(CheckOutcome.OFF, "the numerical check was off")

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"outcome": self.outcome.value}


@dataclass(frozen=True, slots=True)
class SearchReport:
    """How far a search beyond the offered candidates went.

    Attributes
    ----------
    checked : int
        Neighbours whose results were compared; without a numerical check, those that were launched.
    passed : int
        Of these, those that were right.
    timed : int
        Of these, those that were read at least once.
    kept : int
        Of these, those that went on to the race.
    seconds : float
        What it took.
    is_complete : bool
        Whether it ended because nothing promising was left, and not because time was.
    """

    checked: int
    passed: int
    timed: int
    kept: int
    seconds: float
    is_complete: bool

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class SelectionReport:
    """Which kernel was selected, why, and what was measured of all.

    Attributes
    ----------
    verdict : Verdict
        Why.
    winner : str
        The selected kernel id: the first choice's unless the verdict is `winner`.
    winner_ms, first_choice_ms : float or None
        Times of the selected one and of the first choice: those of the confirmation when it decided, else the
        median of the race, else the screening's; None when nothing was measured.
    candidates : tuple of CandidateReport
        In the order they were given, the first choice first.
    confirmation : Confirmation or None
        None when there was none, or it had too few pairs.
    search : SearchReport or None
        None when only offered candidates took part.
    histogram : SampleHistogram or None
        The samples of the confirmation; None where there was none.
    numerical_check : NumericalCheck or None
        None where whoever measured does not say.
    """

    verdict: Verdict
    winner: str
    winner_ms: float | None
    first_choice_ms: float | None
    candidates: tuple[CandidateReport, ...]
    confirmation: Confirmation | None = None
    search: SearchReport | None = None
    histogram: SampleHistogram | None = None
    numerical_check: NumericalCheck | None = None

    @classmethod
    def not_measured(cls, first_choice: str, reason: str) -> Self:
        """Return the report of a measurement that the first choice's own failure ended."""
        untimed = CandidateReport.untimed(first_choice, reason)
        return cls(Verdict.NOT_MEASURED, first_choice, None, None, (untimed,))

    def with_candidates(self, more: Iterable[CandidateReport]) -> Self:
        """Return the report with further candidates behind those it has, such as those that failed a check."""
        return replace(self, candidates=(*self.candidates, *more))

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain JSON values."""
        return {
            "verdict": self.verdict.value,
            "winner": self.winner,
            "winner_ms": self.winner_ms,
            "first_choice_ms": self.first_choice_ms,
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "confirmation": self.confirmation.to_dict() if self.confirmation else None,
            "search": self.search.to_dict() if self.search else None,
            "histogram": self.histogram.to_dict() if self.histogram else None,
            "numerical_check": self.numerical_check.to_dict() if self.numerical_check else None,
        }
