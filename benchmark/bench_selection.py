"""Measures on a GPU how well kernels are chosen, beside other libraries and tuners, and what must hold of it.

Each part runs in a process of its own, and keeps its rows in a file after each item:

- `shapes`: torch, CuPy, JAX, nvmath's autotune, CUBLAS_GEMM_AUTOTUNE, the library's first choice, a naive tuner and
  our three breadths, on each of 57 shapes side by side, with the roofline;
- `fresh`: the winners of `shapes`, run just before, replayed in a fresh process beside the first choice;
- `decode`: 12 decode shapes against the best of cuBLASLt's 8;
- `again`: whether 5 fresh tuning processes agree, on every fifth shape;
- `quality`: what a search of 3 s finds of what one of 60 s finds, on every fifth shape;
- `wrong`: 2,000 recorded winners of random problems against float64.

All of it takes more than half an hour, so it can be shared and cut: `--gpus N` gives each of N devices every N-th item,
at the same time; `--parts` and `--shapes A:B` (items of the parts' own lists; the list of `wrong` has chunks of 100
problems) measure less, and `--merge FOLDER...` puts together what the runs left, anywhere below those folders. `--plan`
tells beforehand what it takes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from harness.command import MISSED
from harness.cuda_command import NO_DEVICE, options_of, parser_of, say_no_device
from harness.machine import metadata
from harness.result import Result, write
from selection.document import merged_parts, read_documents
from selection.estimate import plan_text, shortest_seconds
from selection.figures import PARTS
from selection.running import expected_items, in_order, run_part, wanted_items
from selection.setting import Setting
from selection.shapes import DECODE_SHAPES, SHAPES, parse_slice
from selection.sharing import devices_of, parse_share, run_shares, share_folders
from selection.summary import result_of, short_text

FOLDER = "selection_parts"
SHORTFALL = (
    "again: 11 of 12 shapes agree (10 in earlier runs). The winners of 256x28672x4096 gain 10 to 12 % over the first "
    "choice in all five searches, and lie 1.6 % apart: the slowest is of the process that came first, whose search "
    "read 587 kernels, the others' 641 to 765. About half of such a search goes into loading them. Tried, each "
    "since an earlier run with 10 of 12: two sets of operands at least, lying in sixteen ways; readings that replay "
    "graphs, and a race of 24 candidates; kernels compiled beside the search, which lists neighbours 8 times faster. "
    "Tried apart from it, and of no use: loading kernels ahead, by capturing them on another thread (loads exclude "
    "each other and all launches, 3.6 ms each, 6.8 ms on two threads), and operands in several allocations (the "
    "times of five kernels of 512x2304x768 with a bias differ by less than 1 % over ten single ones, over four, and "
    "over sixteen at once)."
)
"""Why a goal is missed where it is: what was tried, and what limits it."""

_QUICK_PARTS = PARTS[:2]
# What a part's process may take beyond its limit, to end by itself.
_GRACE_SECONDS = 25.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = options_of(parser, words)
    parts = (options.parts or ",".join(_QUICK_PARTS if options.quick else PARTS)).split(",")
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"--parts: {', '.join(unknown)}; allowed: {', '.join(PARTS)}")
    try:
        setting = _setting(options)
        if options.plan:
            sys.stdout.write(plan_text({part: len(wanted_items(part, setting)) for part in parts}, setting) + "\n")
            return 0
        if options.merge is not None:
            return _finish(read_documents(options.merge), setting, options)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if say_no_device():
        return NO_DEVICE
    if options.part is not None:
        folder = (options.results or Path.cwd()) / FOLDER
        run_part(options.part, setting, folder, resume=options.resume, seconds=options.limit)
        return 0
    sys.stderr.write(plan_text({part: len(wanted_items(part, setting)) for part in parts}, setting) + "\n")
    return _run(parts, words, setting, options) if options.gpus == 1 else _run_on_several(words, setting, options)


def _run(parts: Sequence[str], words: Sequence[str], setting: Setting, options: argparse.Namespace) -> int:
    """Run each part in a process of its own; one that fails hides nothing of the others."""
    end = time.monotonic() + options.limit
    with tempfile.TemporaryDirectory() as temporary:
        results = options.results or Path(temporary)
        # Later words win, so that what was asked for is passed on as it was.
        ours = ["--results", str(results), "--work", str(setting.work if options.work else temporary)]
        for part in parts:
            left = end - time.monotonic()
            if left < max(_GRACE_SECONDS, shortest_seconds(part, len(wanted_items(part, setting)), setting)):
                sys.stderr.write(f"{part} is left out: the time is up\n")
                continue
            command = [sys.executable, str(Path(__file__).resolve()), *words, *ours, "--part", part]
            timeout = None if left == float("inf") else left
            limit = [] if timeout is None else ["--limit", f"{left - _GRACE_SECONDS:.0f}"]
            try:
                done = subprocess.run([*command, *limit], check=False, timeout=timeout)
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"{part} took more than {left:.0f} s\n")
                continue
            if done.returncode != 0:
                sys.stderr.write(f"{part} ended with status {done.returncode}\n")
        return _finish(read_documents([results / FOLDER]), setting, options)


def _run_on_several(words: Sequence[str], setting: Setting, options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as temporary:
        results = (options.results or Path(temporary)).resolve()
        work = setting.work if options.work else Path(temporary)
        run_shares([sys.executable, str(Path(__file__).resolve()), *words], options.gpus, results, work)
        # Not all of the results: there may be those of earlier runs, of other code.
        return _finish(
            read_documents(folder / FOLDER for folder in share_folders(results, options.gpus)), setting, options
        )


def _finish(documents: list[dict[str, object]], setting: Setting, options: argparse.Namespace) -> int:
    if not documents:
        sys.stderr.write("nothing was measured: no part left a file\n")
        return 1
    parts = in_order(merged_parts(documents), setting)
    result = result_of(parts, expected_items(setting), documents, SHORTFALL)
    if options.results is not None:
        write(result, options.results, _facts(documents))
    sys.stdout.write(f"\n{short_text(result)}\n")
    return _status(result, is_quick=options.quick)


def _status(result: Result, *, is_quick: bool) -> int:
    return 0 if is_quick or result.is_reached else MISSED


def _facts(documents: Sequence[dict[str, object]]) -> dict[str, object]:
    """Return the facts of the last run, on whose device the figures were measured, wherever they are put together."""
    last = documents[-1]["metadata"]
    return {**metadata(), **(last if isinstance(last, dict) else {})}


def _setting(options: argparse.Namespace) -> Setting:
    """Return what the options ask for; ValueError for a slice that is none."""
    if options.shapes is not None:
        parse_slice(options.shapes)
    if options.gpus < 1:
        raise ValueError("--gpus: at least 1")
    devices_of(options.gpus, os.environ)
    quick = {"search_seconds": 0.3, "long_seconds": 1.0, "rounds": 5, "repeats": 2, "problems": 20}
    chosen = {name: getattr(options, name) for name in quick if getattr(options, name) is not None}
    return Setting(
        work=(options.work or Path(tempfile.gettempdir())).resolve(),
        wanted=options.shapes,
        share=None if options.share is None else parse_share(options.share),
        shapes_file=options.shapes_file,
        decode_file=options.decode_file,
        without=frozenset(options.without.split(",")) - {""},
        quick=options.quick,
        **((quick if options.quick else {}) | chosen),
    )


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("--parts", metavar="NAMES", help="which parts run, with commas; all by default, in a quick run the first two")
    add("--shapes", metavar="A:B", help="which items of the parts' lists, as a slice, such as 0:29 or ::5")
    add("--gpus", type=int, default=1, metavar="N", help="on how many devices at once; default 1")
    add("--share", metavar="I/N", help="only every N-th item from the I-th on; what each device of --gpus gets")
    add("--limit", type=float, default=float("inf"), metavar="SECONDS", help="after which nothing is begun any more")
    add("--resume", action="store_true", help="keep the rows that the folder has, and measure the others")
    add("--without", default="", metavar="NAMES", help="contestants of `shapes` that take no part, with commas")
    add("--search-seconds", type=float, metavar="S", help="what a search may take a shape; default 3")
    add("--long-seconds", type=float, metavar="S", help="what the long search of `quality` may take; default 60")
    add("--rounds", type=int, metavar="N", help="rounds of a comparison; default 41")
    add("--repeats", type=int, metavar="N", help="processes of `again`; default 5")
    add("--problems", type=int, metavar="N", help="problems of `wrong`; default 2000")
    add("--shapes-file", type=Path, default=SHAPES, metavar="FILE", help="another list of shapes")
    add("--decode-file", type=Path, default=DECODE_SHAPES, metavar="FILE", help="another list of decode shapes")
    add("--work", type=Path, metavar="FOLDER", help="where the tuners' results files go; a temporary folder by default")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--plan", action="store_true", help="only tell how long it would take")
    which.add_argument("--merge", type=Path, nargs="+", metavar="FOLDER", help="only put together what runs left there")
    which.add_argument("--part", choices=PARTS, help="run this one, in this process")
    return parser


if __name__ == "__main__":
    sys.exit(main())
