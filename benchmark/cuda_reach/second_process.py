"""A second process measures nothing, and gives the same bits."""

import hashlib
import tempfile
import warnings
from pathlib import Path
from typing import Any

from harness.cuda_shapes import REACH_SHAPES, product_of
from harness.prepared import PreparedProcess
from harness.result import Figure, Goal, Result

from cuda_reach.setting import FILENAME
from tensorplay import tunable
from tensorplay.backends.cublaslt.library import cublaslt, driver

# Tuning stays on in both: a signature that the file did not answer for would be measured, and counted.
SETTINGS = {"ENABLED": "1", "TUNING": "1", "FILENAME": FILENAME}


def prepare() -> None:
    """Import what a process needs, without touching the device."""
    warnings.simplefilter("ignore")
    driver()
    cublaslt()


def multiply(shapes: int) -> dict[str, Any]:
    """Run the last `shapes` products twice; return a digest of each result, and the counters."""
    import torch

    digests = []
    for shape in REACH_SHAPES[-shapes:]:
        operands = shape.operands()
        call = product_of(operands)
        seen = set()
        for _ in range(2):
            operands.out.zero_()
            call()
            seen.add(hashlib.sha256(operands.out.view(torch.uint8).cpu().numpy().tobytes()).hexdigest())
        digests.append(sorted(seen))
    return {"digests": digests, "stats": tunable.stats(), "results": tunable.get_results()}


def measure(quick: bool) -> Result:
    """Run the same products in two processes that share nothing but the file."""
    shapes = 3 if quick else len(REACH_SHAPES)
    with tempfile.TemporaryDirectory() as folder:
        processes = [PreparedProcess(multiply, directory=folder, settings=SETTINGS) for _ in range(2)]
        with processes[0], processes[1]:
            for process in processes:
                process.wait_until_ready()
            first = processes[0].call(shapes=shapes)
            (path,) = Path(folder).glob("*.csv")
            written = path.read_bytes()
            second = processes[1].call(shapes=shapes)
            changed = path.read_bytes() != written
    differing = sum(
        one != other or len(one) != 1 for one, other in zip(first["digests"], second["digests"], strict=True)
    )
    return Result(
        name="second_process",
        question="Does a second process measure nothing and give the same bits?",
        figures=[
            Figure("measured by the second process", second["stats"]["measured"], goal=Goal(0)),
            Figure("rejected by the second process", second["stats"]["rejected"], goal=Goal(0)),
            Figure("replayed by the second process", second["stats"]["replayed"], goal=Goal(2 * shapes, at_least=True)),
            Figure("shapes whose bits differ", differing, goal=Goal(0)),
            Figure("files changed by it", int(changed), goal=Goal(0)),
            Figure("measured by the first process", first["stats"]["measured"], goal=Goal(shapes, at_least=True)),
        ],
        settings={"shapes": shapes, "calls of each": 2, "variables": SETTINGS},
        rows=[
            {"op": op, "params": params, "kernel": kernel, "ms": time_ms}
            for op, params, kernel, time_ms in first["results"]
        ],
    )
