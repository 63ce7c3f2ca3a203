"""Times the load of a results file of 100,000 lines, and weighs what it holds.

Each load has a fresh process, with everything imported before the clock starts. One line in five is not plain (it
has a padded leading dimension), which takes longer to check; a file of plain lines alone is shown beside.
"""

import gc
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.command import run
from harness.fresh import call_in_fresh_process
from harness.result import Figure, Goal, Result
from harness.spread import spread_of
from harness.winners import write_winners

from tensorplay import tunable

LINES = 100_000
FILES = {"mixed.csv": 5, "plain.csv": 0}


def write_files(lines: int) -> None:
    """Write the results files for this build to the working directory."""
    for name, padded_every in FILES.items():
        write_winners(Path(name), tunable.get_validators(), lines, padded_every=padded_every)


def load(name: str) -> dict[str, float]:
    """Read the file as `tunable.read_file` does; return seconds, and by how many MB this process grew."""
    tunable.set_filename(name)
    tunable.get_validators()
    gc.collect()
    # 5 sets the peak back to now; where the kernel forbids it, start-up's own peak stays the least.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before_mb = memory_mb()["VmRSS"]
    begin = time.perf_counter()
    done = tunable.read_file()
    seconds = time.perf_counter() - begin
    after = memory_mb()
    if not done:
        raise RuntimeError(f"{name} was refused")
    return {
        "seconds": seconds,
        "peak MB": after["VmHWM"] - before_mb,
        "kept MB": after["VmRSS"] - before_mb,
        "winners": len(tunable.get_results()),
    }


def memory_mb() -> dict[str, float]:
    """Return what the system says of this process's memory, in MB of 10**6 bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return {
        line.split(":")[0]: int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(("VmRSS:", "VmHWM:"))
    }


def measure(quick: bool) -> Result:
    """Load each file in several fresh processes, by turns."""
    lines, repeats = (1000, 1) if quick else (LINES, 11)
    loads: dict[str, list[dict[str, Any]]] = {name: [] for name in FILES}
    with tempfile.TemporaryDirectory() as folder:
        call_in_fresh_process(write_files, directory=folder, lines=lines)
        for _ in range(repeats):
            for name, found in loads.items():
                found.append(call_in_fresh_process(load, directory=folder, name=name))
        size_mb = {name: Path(folder, name).stat().st_size / 1e6 for name in FILES}
    winners = {found["winners"] for name in FILES for found in loads[name]}
    if winners != {lines}:
        raise RuntimeError(f"{lines} lines were written, {winners} winners were read")
    spreads = {
        (name, what): spread_of([found[what] for found in loads[name]])
        for name in FILES
        for what in ("seconds", "peak MB", "kept MB")
    }

    def figure(text: str, name: str, what: str, unit: str, goal: Goal | None = None) -> Figure:
        spread = spreads[name, what]
        return Figure(text, spread.median, unit, goal, spread)

    return Result(
        name="load",
        question=f"How long does a results file of {lines:,} lines take to load, and how much memory?",
        figures=[
            figure("load", "mixed.csv", "seconds", "s", Goal(1.0)),
            figure("memory at the peak", "mixed.csv", "peak MB", "MB", Goal(60)),
            figure("memory kept", "mixed.csv", "kept MB", "MB", Goal(60)),
            figure("plain lines only: load", "plain.csv", "seconds", "s"),
            figure("plain lines only: memory at the peak", "plain.csv", "peak MB", "MB"),
        ],
        settings={"lines": lines, "fresh processes for each file": repeats, "file MB": size_mb},
    )


if __name__ == "__main__":
    sys.exit(run(measure))
