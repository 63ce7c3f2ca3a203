"""Measures what the service costs the process that it is in, and how soon it answers, in parts.

- `hits`: a hit with the dashboard on and eight clients streaming, against the dashboard off;
- `listing`: `GET /results?limit=100` among 50,000 winners, and how long it holds the host's own thread up;
- `page`: the results page in a real browser, and how soon an open page shows a change made in Python;
- `soak`: 200 streams opened and dropped, in as many events as 20 minutes can bring;
- `stop`: stopping with 50 open streams.

Each part runs in a process of its own. `--part NAME`, as often as wanted, runs only those; what the result file says
of the others stays.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.command import MISSED, RESULTS
from harness.machine import metadata
from harness.result import Figure, Goal, Result, render, write
from harness.spread import Spread

PARTS = ("hits", "listing", "page", "soak", "stop")
NAME = "service"
SECONDS = 900.0
Document = Mapping[str, Any]


def measure_part(part: str, folder: Path, *, quick: bool) -> None:
    """Run one part here, and write what it found."""
    result: Result = import_module(f"service.part_{part}").measure(quick)
    write(result, folder, metadata() | {"niceness": os.nice(0)})
    sys.stdout.write(f"\n{render(result)}\n")


def measured(parts: Sequence[str], *, quick: bool) -> dict[str, Document]:
    """Run parts, each in a process of its own, and return what they found; nothing of one that failed."""
    documents = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            sys.stderr.write(f"{part} ...\n")
            command = [sys.executable, str(Path(__file__).resolve()), "--alone", part, "--results", folder]
            try:
                subprocess.run(command + ["--quick"] * quick, check=False, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"{part} took more than {SECONDS:g} s\n")
            path = Path(folder, f"{NAME}_{part}.json")
            if path.exists():
                documents[part] = json.loads(path.read_text(encoding="utf-8"))
    return documents


def known(folder: Path | None) -> dict[str, Document]:
    """Return what the result file says of each part."""
    path = folder / f"{NAME}.json" if folder else None
    if path is None or not path.exists():
        return {}
    written = json.loads(path.read_text(encoding="utf-8"))
    return {
        part: {
            **document,
            "figures": [
                {**figure, "name": figure["name"].removeprefix(f"{part}: ")}
                for figure in written["figures"]
                if figure["name"].startswith(f"{part}: ")
            ],
        }
        for part, document in written["settings"]["parts"].items()
    }


def merged(documents: Mapping[str, Document]) -> Result:
    """Return one result of those of the parts; a part without one counts as missed."""
    found = {part: documents[part] for part in PARTS if part in documents}
    figures = [Figure("parts that did not finish", len(PARTS) - len(found), goal=Goal(0))]
    figures += [_figure(part, each) for part, document in found.items() for each in document["figures"]]
    kept = ("question", "settings", "rows", "metadata")
    return Result(
        name=NAME,
        question="What does the service cost its process, and how soon does it answer?",
        figures=figures,
        settings={"parts": {part: {name: document[name] for name in kept} for part, document in found.items()}},
    )


def _figure(part: str, written: Document) -> Figure:
    goal, spread = written["goal"], written["spread"]
    return Figure(
        f"{part}: {written['name']}",
        written["measured"],
        written["unit"],
        None if goal is None else Goal(float(goal[2:]), at_least=goal.startswith(">=")),
        None if spread is None else Spread(**spread),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only see whether it runs; the figures mean nothing")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="where the result file goes")
    parser.add_argument("--part", choices=PARTS, action="append", help="run this one; may be repeated")
    parser.add_argument("--alone", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    folder: Path | None = options.results or (None if options.quick else RESULTS)
    if options.alone and folder:
        measure_part(options.alone, folder, quick=options.quick)
        return 0
    facts = metadata() | {"quick": options.quick, "niceness": os.nice(0)}
    before = known(folder) if options.part else {}
    result = merged(before | measured(options.part or PARTS, quick=options.quick))
    if folder is not None:
        write(result, folder, facts)
    sys.stdout.write(f"\n{render(result)}\n")
    return 0 if options.quick or result.is_reached else MISSED


if __name__ == "__main__":
    sys.exit(main())
