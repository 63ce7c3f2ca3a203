"""Texts from outside as people and programs are shown them: names that are no UTF-8, and letters that nobody sees."""

import re

__all__ = ["encodable", "unmasked"]

# Control characters but tab and the end of a line, what turns the direction of writing, and halves of a pair.
_MASKING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


def encodable(text: str) -> str:
    """Return a text that has UTF-8: what names of files, users and programs hold besides is shown as an escape."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def unmasked(text: str) -> str:
    """Return a text in which nothing turns the direction of another or steers a terminal: escapes say what it was."""
    return text if text.isprintable() else _MASKING.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
