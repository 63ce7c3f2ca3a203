"""How candidates are timed, compared and chosen. Takes a `Timer`: knows no device, file, or clock of its own."""

from tensorplay.measure.budget import Allowance, Budget, Deadline
from tensorplay.measure.mean_choice import lowest_mean, select_in_process
from tensorplay.measure.numerics import Agreement, Tolerance, agree, default_tolerance
from tensorplay.measure.report import CandidateReport, Confirmation, SearchReport, SelectionReport, Verdict
from tensorplay.measure.search import Search
from tensorplay.measure.search_memory import SearchMemory
from tensorplay.measure.selection import Selection, choose

__all__ = [
    "Agreement",
    "Allowance",
    "Budget",
    "CandidateReport",
    "Confirmation",
    "Deadline",
    "Search",
    "SearchMemory",
    "SearchReport",
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
