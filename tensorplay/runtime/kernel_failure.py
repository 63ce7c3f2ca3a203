"""Whether a measurement found that a kernel is no winner any more, whatever it was."""

from tensorplay.measure.report import SelectionReport

__all__ = ["has_failed"]

_FAILURES = ("wrong result:", "does not launch:", "cannot run:")
"""How the reasons begin that say so."""


def has_failed(kernel: str, report: SelectionReport) -> bool:
    """Return whether a measurement found that a kernel does not run, or computes something else."""
    dropped = (candidate.dropped or "" for candidate in report.candidates if candidate.kernel == kernel)
    return any(reason.startswith(_FAILURES) for reason in dropped)
