"""The command line of the benchmarks that need a device, and how their outcome is judged and kept."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.command import MISSED, RESULTS
from harness.cuda_machine import clocks, libraries, reason_for_no_device
from harness.machine import metadata
from harness.prepared import call_prepared
from harness.result import Result, render, write

__all__ = ["NO_DEVICE", "finish", "options_of", "parser_of", "say_no_device"]

NO_DEVICE = 77
"""Exit status where there is no device: nothing was measured, so nothing is reached and nothing missed."""


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of what every such benchmark takes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only see whether it runs; the figures mean nothing")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="where the result file goes")
    return parser


def options_of(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options, the folder of results as it is meant: made absolute, or None for a quick run without one."""
    options = parser.parse_args(arguments)
    folder = options.results or (None if options.quick else RESULTS)
    options.results = None if folder is None else folder.resolve()
    return options


def say_no_device() -> bool:
    """Return whether nothing can be measured here, having said why."""
    reason = reason_for_no_device()
    if reason is not None:
        sys.stderr.write(f"nothing was measured: {reason}\n")
    return reason is not None


def finish(measure: Callable[[], Result], options: argparse.Namespace, *, uses_device: bool = False) -> int:
    """Measure, write the result with the device's facts, print it, and return the exit status.

    `uses_device` is whether this process works with the device itself; else another one is asked about the libraries,
    so that nothing is loaded beside what is measured.
    """
    facts: dict[str, object] = metadata() | {"quick": options.quick, "clocks_before": clocks()}
    result = measure()
    facts["clocks_after"] = clocks()
    with tempfile.TemporaryDirectory() as folder:
        facts["libraries"] = libraries() if uses_device else call_prepared(libraries, directory=folder)
    if options.results is not None:
        write(result, options.results, facts)
    sys.stdout.write(f"\n{render(result)}\n")
    return 0 if options.quick or result.is_reached else MISSED
