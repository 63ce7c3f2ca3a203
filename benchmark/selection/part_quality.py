"""What a short search finds of what a long one finds, each in a process of its own, which has learned nothing."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from harness.fresh import FreshProcessError
from harness.prepared import PreparedProcess

from selection import processes
from selection.setting import Setting, shapes_by_name

__all__ = ["DEFAULT", "items", "measured"]

DEFAULT = slice(None, None, 5)
"""Every fifth shape: 12 of 57."""

_TIMEOUT = 300.0
_ROLES = (processes.tune, processes.tune, processes.compare)

Prepared = list[PreparedProcess]


def items(setting: Setting) -> list[str]:
    """Return the names of all shapes."""
    return list(shapes_by_name(setting.shapes))


def measured(setting: Setting, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row a shape; one whose processes fail is passed over.

    The processes of the next shape import during the long search, which has a minute to make up for it, and are done
    with that before anything else is measured.
    """
    named = shapes_by_name(setting.shapes)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())

        def started() -> Prepared:
            return [stack.enter_context(PreparedProcess(role, directory=folder)) for role in _ROLES]

        following: Prepared = []
        for place, item in enumerate(wanted):
            prepared, following = following, []
            shape = list(named[item])
            try:
                prepared = prepared or _waited_for(started())
                short_found = _tuned(prepared[0], shape, setting.search_seconds)
                following = started() if place + 1 < len(wanted) else []
                long_found = _tuned(prepared[1], shape, setting.long_seconds)
                _waited_for(following)
                row = _compared(prepared[2], shape, setting, short_found, long_found)
            except FreshProcessError as error:
                sys.stderr.write(f"{item}: {error}\n")
                continue
            yield {"item": item, **row}


def _waited_for(started: Prepared) -> Prepared:
    for process in started:
        process.wait_until_ready()
    return started


def _tuned(process: PreparedProcess, shape: list[Any], seconds: float) -> dict[str, Any]:
    wish = {"shapes": [shape], "breadth": "search", "search_seconds": seconds}
    (found,) = process.call(timeout=_TIMEOUT, **wish)
    return dict(found)


def _compared(
    process: PreparedProcess, shape: list[Any], setting: Setting, short: dict[str, Any], long: dict[str, Any]
) -> dict[str, Any]:
    kernels = [short["kernel"], long["kernel"]]
    (times,) = process.call(timeout=_TIMEOUT, shapes=[shape], kernels=[kernels], rounds=2 * setting.rounds)
    return {
        "short_s": setting.search_seconds,
        "long_s": setting.long_seconds,
        "short_us": times[short["kernel"]],
        "long_us": times[long["kernel"]],
        "share": times[long["kernel"]] / times[short["kernel"]],
        "short_took_s": short["seconds"],
        "long_took_s": long["seconds"],
        "short_kernel": short["kernel"],
        "long_kernel": long["kernel"],
        **{
            f"{name}_{key}": each[key]
            for name, each in (("short", short), ("long", long))
            for key in ("verdict", "search")
        },
    }
