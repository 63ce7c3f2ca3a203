"""What the names of files look like that a client may give."""

__all__ = ["FILE_PATTERN", "FILE_WORDS", "RESULTS_PATTERN", "RESULTS_WORDS"]

_LETTERS = "of letters, digits and `_`, `.`, `-`, that begins with none of the last two"

FILE_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,150}\.(?:csv|explain\.jsonl)$"
"""What a name looks like; everything else is unknown."""

RESULTS_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,150}\.csv$"
"""What a file of winners or signatures may be called."""

FILE_WORDS = f"a name without a folder, {_LETTERS} and ends with .csv or .explain.jsonl"
"""What `FILE_PATTERN` allows, for people."""

RESULTS_WORDS = f"a name without a folder, {_LETTERS} and ends with .csv"
"""What `RESULTS_PATTERN` allows, for people."""
