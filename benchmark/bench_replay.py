"""Counts what a second process measures and replays of the products that a first one has tuned."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness.command import run
from harness.fresh import call_in_fresh_process
from harness.host_shapes import HOST_SHAPES
from harness.result import Figure, Goal, Result

from tensorplay import mm, tunable

RESULTS_FILE = "winners.csv"
# Tuning stays on in both: a signature that the file did not answer for would be measured, and counted.
SETTINGS = {"ENABLED": "1", "TUNING": "1", "FILENAME": RESULTS_FILE}


def multiply(shapes: int) -> dict[str, object]:
    """Run each of the first `shapes` products twice; return the counters and how long the first calls took."""
    rng = np.random.default_rng(0)
    first_call_ms = []
    for shape in HOST_SHAPES[:shapes]:
        a, b, out = shape.operands(rng)
        begin = time.perf_counter()
        mm(a, b, out=out)
        first_call_ms.append(1e3 * (time.perf_counter() - begin))
        mm(a, b, out=out)
    return {"stats": tunable.stats(), "first_call_ms": first_call_ms, "file": tunable.get_filename()}


def measure(quick: bool) -> Result:
    """Run the same products in two processes that share nothing but the file."""
    shapes = 2 if quick else 20
    with tempfile.TemporaryDirectory() as folder:
        tuning = call_in_fresh_process(multiply, directory=folder, settings=SETTINGS, shapes=shapes)
        results = Path(tuning["file"])
        written = (folder / results).read_bytes()
        replay = call_in_fresh_process(multiply, directory=folder, settings=SETTINGS, shapes=shapes)
        changed = (folder / results).read_bytes() != written
    first, second = tuning["stats"], replay["stats"]
    return Result(
        name="replay",
        question="Does a second process measure nothing and replay everything?",
        figures=[
            Figure("measured by the second process", second["measured"], goal=Goal(0)),
            Figure("replayed by the second process", second["replayed"], goal=Goal(2 * shapes, at_least=True)),
            Figure("rejected by the second process", second["rejected"], goal=Goal(0)),
            Figure("bytes of the file changed by it", int(changed), goal=Goal(0)),
            Figure("measured by the first process", first["measured"], goal=Goal(shapes, at_least=True)),
            Figure("first calls of the tuning process", sum(tuning["first_call_ms"]), "ms"),
            Figure("first calls of the second process", sum(replay["first_call_ms"]), "ms"),
        ],
        settings={"shapes": shapes, "calls of each": 2, "variables": SETTINGS},
        rows=[
            {"shape": str(shape), "first call tuning ms": tuned_ms, "first call replay ms": replayed_ms}
            for shape, tuned_ms, replayed_ms in zip(
                HOST_SHAPES[:shapes], tuning["first_call_ms"], replay["first_call_ms"], strict=True
            )
        ],
    )


if __name__ == "__main__":
    sys.exit(run(measure))
