"""Names of files that a process writes other things to than winners: none is for a file of winners."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from tensorplay.database.filename import default_untuned_name, insert_ordinal
from tensorplay.database.killers import killers_name
from tensorplay.service.problems import Problem
from tensorplay.service.watched import WatchedContext

__all__ = ["check_free"]

_ANY_DEVICE = "\0"


def check_free(context: WatchedContext, name: str) -> None:
    """Raise a 409 `Problem` for the name of a file that something else goes to, whichever folder that is in."""
    for what, pattern in _taken(context):
        if pattern.fullmatch(name):
            raise Problem(409, "name-taken", f"this process writes {what} to a file of that name; choose another name")


def _taken(context: WatchedContext) -> Iterator[tuple[str, re.Pattern[str]]]:
    values = {each.name: PurePath(str(each.value)).name for each in context.settings()}
    untuned = values["untuned_filename"]
    name = insert_ordinal(untuned, _ANY_DEVICE) if untuned else default_untuned_name(_ANY_DEVICE)
    # Devices that are not met yet have theirs, too.
    yield "untuned signatures", re.compile("(?:[0-9]+|cpu)".join(map(re.escape, name.split(_ANY_DEVICE))))
    yield "its diagnostic lines", re.compile(re.escape(values["verbose_filename"]))
    for _, path in context.results_files():
        yield "kernels that took a process down", re.compile(re.escape(PurePath(killers_name(path)).name))
