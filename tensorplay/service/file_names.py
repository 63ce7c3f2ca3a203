"""What the names of files look like that a client may give."""

__all__ = ["FILE_PATTERN", "RESULTS_PATTERN"]

FILE_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,150}\.(?:csv|explain\.jsonl)$"
"""What a name looks like; everything else is unknown."""

RESULTS_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,150}\.csv$"
"""What a file of winners or signatures may be called."""
