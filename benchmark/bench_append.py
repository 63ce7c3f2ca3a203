"""Times how long it takes to record one winner, on disk.

The file lies in the working directory, as it does by default, since the usual folder for temporary files may be
memory, where nothing has to be written. A plain write with the same flush is timed beside: what the disk takes anyway.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.command import run
from harness.result import Figure, Goal, Result
from harness.spread import differences, spread_of
from harness.winners import many_winners, write_winners

from tensorplay import tunable
from tensorplay.database.csv_text import format_entry
from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore

LARGE = 100_000


def raw_append(path: Path) -> Callable[[Entry], object]:
    """Return what puts a line at the end of the file, and on disk, with nothing around it."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def append(entry: Entry) -> None:
        os.write(fd, format_entry(entry).encode())
        os.fdatasync(fd)

    return append


def appends(writers: Sequence[Callable[[Entry], object]], entries: Sequence[Entry]) -> list[list[float]]:
    """Return the milliseconds of each append of each writer, by turns."""
    spent: list[list[float]] = [[] for _ in writers]
    for entry in entries:
        for append, times in zip(writers, spent, strict=True):
            begin = time.perf_counter()
            append(entry)
            times.append(1e3 * (time.perf_counter() - begin))
    return spent


def measure(quick: bool) -> Result:
    """Append the same winners to a new file, to a large one, and without the library."""
    count, large = (5, 1000) if quick else (500, LARGE)
    validators = [Validator(name, value) for name, value in tunable.get_validators()]
    entries = [entry._replace(params=f"{entry.params}_ws1") for entry in many_winners(count)]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        new, grown = Path(folder, "new.csv"), Path(folder, "large.csv")
        write_winners(grown, tunable.get_validators(), large)
        stores = [ResultsStore(str(path), validators) for path in (new, grown)]
        for store in stores:
            store.load()
        writers = [*(store.append for store in stores), raw_append(Path(folder, "raw.csv"))]
        times = appends(writers, entries)
        whole = [len(ResultsStore(str(path), validators).load().entries) for path in (new, grown)]
    if whole != [count, count + large]:
        raise RuntimeError(f"{count} winners were appended, the files hold {whole}")
    texts = ("append to a new file", f"append to a file of {large:,} lines", "one write and flush alone")
    goals = (Goal(1.0), Goal(1.0), None)
    found = list(map(spread_of, times))
    ours = spread_of(differences(times[0], times[2]))
    return Result(
        name="append",
        question="How long does it take to record one winner, on disk?",
        figures=[
            *(
                Figure(text, spread.median, "ms", goal, spread)
                for text, spread, goal in zip(texts, found, goals, strict=True)
            ),
            Figure("append to a new file, over that", ours.median, "ms", None, ours),
        ],
        settings={"appends": count, "lines of the large file": large},
    )


if __name__ == "__main__":
    sys.exit(run(measure))
