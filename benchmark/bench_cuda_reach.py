"""Measures on a GPU what the NVIDIA backend must reach, beside the first calls of `bench_cuda_tunable.py`.

Each part runs in a process of its own, so that one that fails hides nothing of the others:

- `values`: 200 random products against float64;
- `host_cost`: a hit with `out=`, against the library's binding with ready arguments, and `torch.mm(out=)`;
- `steady`: replay against the feature turned off, by time on the device; and what tuning takes;
- `second_process`: measures nothing, gives the same bits;
- `healing`: stale entries of every kind;
- `capture`: misses and hits under graph capture;
- `memory`: what is left after tuning 300 shapes.

`--part NAME` runs one of them in this process; `--merge FOLDER` puts together what single parts have written there.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.cuda_command import NO_DEVICE, finish, options_of, parser_of, say_no_device
from harness.result import Figure, Goal, Result
from harness.spread import Spread

PARTS = ("values", "host_cost", "steady", "second_process", "healing", "capture", "memory")
SECONDS = 150.0
_PREFIX = "cuda_reach_"


def measure_part(part: str, options: argparse.Namespace) -> Result:
    """Run one part here."""
    result: Result = import_module(f"cuda_reach.{part}").measure(options.quick)
    return replace(result, name=f"{_PREFIX}{part}")


def measure_all(options: argparse.Namespace) -> Result:
    """Run every part in a process of its own, and put their results together."""
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            sys.stderr.write(f"{part} ...\n")
            command = [sys.executable, str(Path(__file__).resolve()), "--part", part, "--results", folder]
            try:
                subprocess.run(command + ["--quick"] * options.quick, check=False, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"{part} took more than {SECONDS:g} s\n")
        return merged(documents_in(Path(folder)))


def documents_in(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return what the parts have written there, by part."""
    paths = {part: folder / f"{_PREFIX}{part}.json" for part in PARTS}
    return {part: json.loads(path.read_text(encoding="utf-8")) for part, path in paths.items() if path.exists()}


def merged(documents: Mapping[str, Mapping[str, Any]]) -> Result:
    """Return one result of those of the parts; a part without one counts as missed."""
    figures: list[Figure] = [Figure("parts that did not finish", len(PARTS) - len(documents), goal=Goal(0))]
    for part, document in documents.items():
        figures += [figure_of(part, written) for written in document["figures"]]
    return Result(
        name="cuda_reach",
        question="Does the NVIDIA backend reach what it must?",
        figures=figures,
        settings={
            "missing": [part for part in PARTS if part not in documents],
            "parts": {
                part: {name: document[name] for name in ("question", "settings", "rows", "metadata")}
                for part, document in documents.items()
            },
        },
        shortfall=" ".join(f"{part}: {each['shortfall']}" for part, each in documents.items() if "shortfall" in each),
    )


def figure_of(part: str, written: Mapping[str, Any]) -> Figure:
    """Return the figure that a result file holds."""
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
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--part", choices=PARTS, help="run this one, in this process")
    which.add_argument("--merge", type=Path, metavar="FOLDER", help="only put together what the parts wrote there")
    which.add_argument("--list", action="store_true", help="print the names of the parts")
    options = options_of(parser, arguments)
    if options.list:
        sys.stdout.write("\n".join(PARTS) + "\n")
        return 0
    if say_no_device():
        return NO_DEVICE
    if options.merge is not None:
        return finish(lambda: merged(documents_in(options.merge)), options)
    if options.part is not None:
        return finish(lambda: measure_part(options.part, options), options, uses_device=True)
    return finish(lambda: measure_all(options), options)


if __name__ == "__main__":
    sys.exit(main())
