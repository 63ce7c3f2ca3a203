"""Exit codes of the commands; click itself ends with 2 when the command line is at fault."""

__all__ = ["FAILED", "INTERRUPTED"]

FAILED = 1
"""Something is wrong: values, a file, the environment."""

INTERRUPTED = 130
"""Ctrl-C: 128 and the number of SIGINT, as shells have it."""
