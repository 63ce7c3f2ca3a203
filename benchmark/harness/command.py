"""The command line that every benchmark has."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.machine import metadata
from harness.result import Result, render, write

__all__ = ["MISSED", "RESULTS", "run"]

RESULTS = Path(__file__).resolve().parents[1] / "results"

MISSED = 3
"""Exit status when a goal is missed: not that of a Python program that raised, or was called wrongly."""


# Above this share of the cores, others take part in what is measured; threaded products suffer most.
_BUSY = 0.5


def run(measure: Callable[[bool], Result], arguments: Sequence[str] | None = None) -> int:
    """Measure, write the result, print it, and return the exit status.

    `measure` is told whether the run is a quick one. That only shows that a benchmark works: its figures mean
    nothing, so they are judged by nobody and written only where a folder is named.
    """
    parser = argparse.ArgumentParser(description=sys.modules[measure.__module__].__doc__)
    parser.add_argument("--quick", action="store_true", help="only see whether it runs; the figures mean nothing")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="where the result file goes")
    options = parser.parse_args(arguments)
    _warn_when_busy()
    before = metadata()
    result = measure(options.quick)
    folder = options.results or (None if options.quick else RESULTS)
    if folder is not None:
        facts = before | {"load_average_after": metadata()["load_average"], "quick": options.quick}
        write(result, folder, facts)
    sys.stdout.write(f"\n{render(result)}\n")
    return 0 if options.quick or result.is_reached else MISSED


def _warn_when_busy() -> None:
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > _BUSY * cores:
        sys.stderr.write(
            f"warning: the machine is busy (load {load:.1f} on {cores} cores), so the figures say little about it; "
            "run again when it is quiet\n"
        )
