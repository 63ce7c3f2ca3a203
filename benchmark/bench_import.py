"""Times `import tensorplay` in a fresh process, against `import numpy`.

The statement is timed in the new interpreter itself, whose own start is no part of it. `import tensorplay` alone
imports almost nothing; what the first product brings along is shown beside it. Byte code is there for all, as an
installation leaves it.
"""

import subprocess
import sys
import tempfile

from harness.command import run
from harness.fresh import clean_environment
from harness.result import Figure, Goal, Result
from harness.spread import ratio_of_medians, spread_of

STATEMENTS = {
    "numpy": "import numpy",
    "tensorplay": "import tensorplay",
    "products": "from tensorplay import mm",
    "tunable": "from tensorplay import tunable",
}
SOURCE = "from time import perf_counter_ns; begin = perf_counter_ns(); {}; print(perf_counter_ns() - begin)"


def import_ms(statement: str, folder: str) -> float:
    """Return the milliseconds that the statement takes in a fresh process."""
    command = (sys.executable, "-c", SOURCE.format(statement))
    environment = clean_environment() | {"PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return int(done.stdout) / 1e6


def measure(quick: bool) -> Result:
    """Run the statements by turns, in an order that is reversed each time, after one round that compiles them."""
    rounds = 1 if quick else 41
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(-1, rounds):
            for name in list(STATEMENTS) if number % 2 else list(reversed(STATEMENTS)):
                spent = import_ms(STATEMENTS[name], folder)
                if number >= 0:
                    times[name].append(spent)
    spreads = {name: spread_of(values) for name, values in times.items()}
    figures = []
    for name in ("tensorplay", "products", "tunable"):
        ratio = ratio_of_medians(times[name], times["numpy"])
        goal = Goal(1.3) if name == "tensorplay" else None
        figures.append(Figure(f"{STATEMENTS[name]!r} over 'import numpy'", ratio.median, "", goal, ratio))
    return Result(
        name="import",
        question="How long does `import tensorplay` take in a fresh process, against `import numpy`?",
        figures=[
            *figures,
            *(Figure(STATEMENTS[name], spread.median, "ms", None, spread) for name, spread in spreads.items()),
        ],
        settings={"fresh processes for each": rounds},
    )


if __name__ == "__main__":
    sys.exit(run(measure))
