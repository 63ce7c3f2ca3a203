"""How candidates are timed, compared and chosen. Takes a `Timer`: knows no device, file, or clock of its own."""

from tensorplay.measure.budget import Allowance, Budget, Deadline
from tensorplay.measure.mean_choice import lowest_mean, select_in_process
from tensorplay.measure.numerics import Agreement, Tolerance, agree, default_tolerance
from tensorplay.measure.report import CandidateReport, Confirmation, SelectionReport, Verdict
from tensorplay.measure.selection import Selection, choose

__all__ = [
    "Agreement",
    "Allowance",
    "Budget",
    "CandidateReport",
    "Confirmation",
    "Deadline",
    "Selection",
    "SelectionReport",
    "Tolerance",
    "Verdict",
    "agree",
    "choose",
    "default_tolerance",
    "lowest_mean",
    "select_in_process",
]
