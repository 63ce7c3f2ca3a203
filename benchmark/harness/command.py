"""The command line that every benchmark has."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.machine import metadata
from harness.quiet import QUIET_SHARE, Bystanders
from harness.result import Result, render, write

__all__ = ["MISSED", "RESULTS", "run"]

RESULTS = Path(__file__).resolve().parents[1] / "results"

MISSED = 3
"""Exit status when a goal is missed: not that of a Python program that raised, or was called wrongly."""


_LOOK_SECONDS = 0.5


def run(measure: Callable[[bool], Result], arguments: Sequence[str] | None = None) -> int:
    """Measure, write the result, print it, and return the exit status.

    `measure` is told whether the run is a quick one. That only shows that a benchmark works: its figures mean
    nothing, so they are judged by nobody and written only where a folder is named.
    """
    parser = argparse.ArgumentParser(description=sys.modules[measure.__module__].__doc__)
    parser.add_argument("--quick", action="store_true", help="only see whether it runs; the figures mean nothing")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="where the result file goes")
    options = parser.parse_args(arguments)
    others = _others_now()
    _warn_when_busy(others)
    facts = metadata() | {"processor_share_of_others": others, "quick": options.quick}
    result = measure(options.quick)
    folder = options.results or (None if options.quick else RESULTS)
    if folder is not None:
        write(result, folder, facts)
    sys.stdout.write(f"\n{render(result)}\n")
    return 0 if options.quick or result.is_reached else MISSED


def _warn_when_busy(others: float) -> None:
    if others > QUIET_SHARE:
        sys.stderr.write(
            f"warning: others take {others:.0%} of the processors, so the figures may say more about them; "
            "run again when the machine is quiet\n"
        )


def _others_now() -> float:
    bystanders = Bystanders()
    time.sleep(_LOOK_SECONDS)
    return bystanders.share()
