"""Values of 200 random products, through the public functions, against NumPy in float64."""

import random
import tempfile
from typing import Any

from harness.result import Figure, Goal, Result

from cuda_reach.products import OPERATIONS, Case, random_case
from cuda_reach.setting import context_of, prime, run_under
from tensorplay.measure.statistics import median
from tensorplay.runtime.context import TuningContext

COUNT = 200
# Short budgets: whichever kernel wins, its values are judged.
SETTINGS = {"FAMILIES": "all", "MAX_TUNING_DURATION_MS": "1", "MAX_TUNING_SAMPLES": "4"}


def measure(quick: bool) -> Result:
    """Compute each while tuning and once more as a hit; the reference is the same for both."""
    rng = random.Random(20)  # noqa: S311 - shapes, no secret
    cases = [random_case(rng, OPERATIONS[place % len(OPERATIONS)]) for place in range(21 if quick else COUNT)]
    with tempfile.TemporaryDirectory() as folder:
        context = context_of(folder, SETTINGS)
        prime(context)
        rows = [_judged(context, case, seed) for seed, case in enumerate(cases)]
        stats = context.stats()
    wrong = [row for row in rows if not row["share"] <= 1.0]
    by_dtype = {
        dtype: [row["share"] for row in rows if row["dtype"] == dtype]
        for dtype in sorted({case.dtype for case in cases})
    }
    return Result(
        name="values",
        question="Is every product within its data type's error bound of float64? (1 is the bound itself)",
        figures=[
            Figure("products", len(rows), goal=Goal(len(cases), at_least=True)),
            Figure("outside the bound, or failed", len(wrong), goal=Goal(0)),
            Figure("results that wrote beside their rows", sum(row["spilled"] for row in rows), goal=Goal(0)),
            Figure("hits of other bits than the first call", sum(row["differs"] for row in rows), goal=Goal(0)),
            *(
                Figure(f"{dtype}: worst of {len(shares)}, as a share of the bound", max(shares))
                for dtype, shares in by_dtype.items()
            ),
            Figure("median share", median([row["share"] for row in rows])),
            Figure("measured", stats["measured"]),
        ],
        settings={"seed": 20, "variables": SETTINGS},
        rows=wrong,
    )


def _judged(context: TuningContext, case: Case, seed: int) -> dict[str, Any]:
    import torch

    row: dict[str, Any] = {
        "dtype": case.dtype, "case": str(case), "share": float("inf"), "spilled": 0, "differs": 0, "error": "",
    }  # fmt: skip
    try:
        torch.backends.cuda.matmul.allow_tf32 = case.dtype == "tf32"
        posed = case.posed(seed)
        run_under(context, posed.compute)
        first = posed.found()
        run_under(context, posed.compute)
        row["share"] = case.share_of_bound(posed, first)
        row["spilled"] = int(posed.has_spilled())
        row["differs"] = int(first.tobytes() != posed.found().tobytes())
    except Exception as error:  # noqa: BLE001 - it is the finding, and the other cases go on
        row["error"] = f"{type(error).__name__}: {error}"
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    return row
