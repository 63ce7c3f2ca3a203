"""What a short search finds of what a long one finds, each in a process of its own, which has learned nothing."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from harness.prepared import PreparedProcess

from selection import processes
from selection.setting import Setting, shapes_by_name

__all__ = ["DEFAULT", "items", "measured"]

DEFAULT = slice(None, None, 5)
"""Every fifth shape: 12 of 57."""

_TIMEOUT = 300.0


def items(setting: Setting) -> list[str]:
    """Return the names of all shapes."""
    return list(shapes_by_name(setting.shapes))


def measured(setting: Setting, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row a shape."""
    named = shapes_by_name(setting.shapes)
    for item in wanted:
        shapes = [list(named[item])]
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            short, long, comparing = (
                stack.enter_context(PreparedProcess(function, directory=folder))
                for function in (processes.tune, processes.tune, processes.compare)
            )
            for process in (short, long, comparing):
                process.wait_until_ready()
            found = {
                seconds: process.call(timeout=_TIMEOUT, shapes=shapes, breadth="search", search_seconds=seconds)[0]
                for process, seconds in ((short, setting.search_seconds), (long, setting.long_seconds))
            }
            kernels = [each["kernel"] for each in found.values()]
            (times,) = comparing.call(timeout=_TIMEOUT, shapes=shapes, kernels=[kernels], rounds=2 * setting.rounds)
        short_found, long_found = found.values()
        yield {
            "item": item,
            "short_s": setting.search_seconds,
            "long_s": setting.long_seconds,
            "short_us": times[short_found["kernel"]],
            "long_us": times[long_found["kernel"]],
            "share": times[long_found["kernel"]] / times[short_found["kernel"]],
            "short_took_s": short_found["seconds"],
            "long_took_s": long_found["seconds"],
            "short_kernel": short_found["kernel"],
            "long_kernel": long_found["kernel"],
        }
