"""What is wrong with a results file that was read, in words for people."""

from collections.abc import Iterator

from tensorplay.database.store import LoadReport

__all__ = ["complaints"]


def complaints(report: LoadReport) -> Iterator[str]:
    """Yield one warning text for each thing that is wrong with a file."""
    yield from report.problems
    if report.refused:
        if any(mismatch.found for mismatch in report.mismatches):
            differing = "; ".join(str(mismatch) for mismatch in report.mismatches)
            why = f"was written by another build or device: {differing}"
        else:
            why = "has no validator lines, so that nothing says which build wrote it, or whether it is a results file"
        yield f"{report.path!r} {why}. It is left as it is, and winners of this build go to a sibling file"
    if report.bad_lines:
        shown = "; ".join(f"line {line.number}: {line.reason}" for line in report.bad_lines[:3])
        more = f" and {len(report.bad_lines) - 3} more" if len(report.bad_lines) > 3 else ""
        yield f"{report.path!r} has lines that are not used: {shown}{more}"
