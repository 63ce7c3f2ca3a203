"""How many values a body may hold: a megabyte of small ones is read in one piece, for a tenth of a second and more."""

from tensorplay.service.problems import Problem

__all__ = ["MOST_VALUES", "check_values"]

MOST_VALUES = 1 << 15
"""Commas and opening brackets of a body; ten thousand signatures, the most that a job takes, need three each."""


def check_values(body: bytes | bytearray) -> None:
    """Raise a 413 `Problem` for a body of too many values, without reading it."""
    if sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise Problem(413, "too-many-values", f"the body holds more than {MOST_VALUES:,} values; send it in parts")
