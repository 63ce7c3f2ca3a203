"""The device's ordinal in the name of a file, as a person sees it there. Pure."""

import re

from tensorplay.database.filename import insert_ordinal

__all__ = ["configured_name", "held_ordinal"]

_ENDING = re.compile(r"(?P<stem>.*?)(?P<ordinal>cpu|[0-9]+)(?P<extension>\.[^.]*)?", re.DOTALL)


def held_ordinal(name: str) -> str:
    """Return the ordinal that the base name ends with, before its extension: `cpu`, digits, or empty."""
    match = _ENDING.fullmatch(name.rpartition("/")[2])
    return match["ordinal"] if match else ""


def configured_name(name: str) -> str | None:
    """Return what a setting must say to mean the file of this name, which holds its ordinal; None where nothing does.

    It has no `%d` where it can do without.
    """
    folder, slash, base = name.rpartition("/")
    match = _ENDING.fullmatch(base)
    if match is None:
        return None
    stem, ordinal, extension = match["stem"], match["ordinal"], match["extension"] or ""
    bases = (f"{stem}{mark}{extension}" for mark in ("", "%d"))
    tried = (f"{folder}{slash}{each}" for each in bases if each)
    return next((each for each in tried if insert_ordinal(each, ordinal) == name), None)
