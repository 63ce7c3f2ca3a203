"""When an earlier winner is kept in spite of a new measurement, and when it cannot be."""

from tensorplay.measure.report import SelectionReport, Verdict

__all__ = ["STAYS", "has_failed", "why_kept"]

STAYS = "the earlier winner stays"
"""How it is told."""

_FAILURES = ("wrong result:", "does not launch:", "cannot run:")
"""How the reasons begin that say that a kernel is no winner any more, whatever it was."""


def has_failed(kernel: str, report: SelectionReport) -> bool:
    """Return whether a measurement found that a kernel does not run, or computes something else."""
    dropped = (candidate.dropped or "" for candidate in report.candidates if candidate.kernel == kernel)
    return any(reason.startswith(_FAILURES) for reason in dropped)


def why_kept(verdict: Verdict) -> str:
    """Return what became of a signature whose winner stays in spite of what was found."""
    return f"{STAYS}, nothing was decided now: {verdict}"
