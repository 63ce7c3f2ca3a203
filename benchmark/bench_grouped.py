"""Measures on a GPU for which groups of products one call of the library beats a loop.

Groups of 2 to 64 products, of sizes from 16 to 2048, all alike, of mixed rows or of few, in float32 and bfloat16. Each
runs as a loop of `mm`, as one grouped call, as one batched call where all are alike, and as a loop of `torch.mm`, by
turns and with the operands in place; times are until the device is done, groups following each other. What was measured
decides the numbers in `grouped_limits.py`; the benchmark judges those that stand there, and suggests others.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence

from grouped.cell import COUNTS, DTYPES, SIZES, cells
from grouped.contest import contest, without_limits
from grouped.verdict import SLACK, Outcome, outcome_of, suggested_limits
from harness.cuda_command import NO_DEVICE, finish, options_of, parser_of, say_no_device
from harness.result import Figure, Goal, Result
from harness.spread import geometric_mean

from tensorplay.backends.cublaslt.grouped_limits import LEAST_PRODUCTS, MOST_MULTIPLICATIONS, UNIFORM_IS_BATCHED
from tensorplay.measure.statistics import median
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

ROUNDS = 7
NAMES = ("loop", "grouped", "batched", "torch")


def measure(options: argparse.Namespace) -> Result:
    """Measure every cell until the time is up, and judge the limits."""
    counts, sizes = (COUNTS[:2], SIZES[:2]) if options.quick else (options.counts, options.sizes)
    rng = random.Random(0)  # noqa: S311 - an order, not a secret
    end, outcomes, left_out = time.monotonic() + options.seconds, [], 0
    with tempfile.TemporaryDirectory() as folder:
        context = TuningContext(environ={}, directory=folder)
        with use_context(context), without_limits():
            timed = []
            for cell in cells(options.dtypes, counts, sizes):
                if time.monotonic() > end:
                    left_out += 1
                    continue
                sys.stderr.write(f"{cell} ...\n")
                timed.append((cell, contest(cell, rounds=3 if options.quick else ROUNDS, rng=rng)))
    for cell, times in timed:
        medians = {name: median(values) for name, values in times.total.items()}
        outcomes.append(outcome_of(cell, dict(times.total), dict(times.host), medians))
    return summed_up(outcomes, left_out)


def summed_up(outcomes: Sequence[Outcome], left_out: int) -> Result:
    """Return the result of all cells."""
    chosen = [outcome for outcome in outcomes if outcome.is_chosen]
    worst = min(chosen, key=lambda outcome: outcome.gain.median, default=None)
    alike = [outcome for outcome in outcomes if "batched" in outcome.medians]
    figures = [
        Figure("cells without a time", left_out, goal=Goal(0)),
        Figure("groups that go at once", len(chosen)),
        Figure("groups that would be faster at once and do not go", sum(outcome.is_missed for outcome in outcomes)),
    ]
    if worst is not None:
        goal = Goal(1 / SLACK, at_least=True)
        figures += [
            Figure(f"worst group at once over a loop: {worst.cell}", worst.gain.median, "", goal, worst.gain),
            Figure("groups at once over a loop", geometric_mean([outcome.gain.median for outcome in chosen])),
            Figure(
                "groups at once over torch's loop",
                geometric_mean([outcome.medians["torch"] / outcome.medians[outcome.at_once] for outcome in chosen]),
            ),
        ]
    if alike:
        ratios = [outcome.medians["grouped"] / outcome.medians["batched"] for outcome in alike]
        figures.append(Figure("batched calls over grouped ones, products alike", geometric_mean(ratios)))
    return Result(
        name="grouped",
        question="For which groups of products does one call of the library beat a loop (1.1 is 10 % faster)?",
        figures=figures,
        settings={
            "rounds": ROUNDS,
            "least products": LEAST_PRODUCTS,
            "most multiplications": dict(MOST_MULTIPLICATIONS),
            "alike by the batched call": UNIFORM_IS_BATCHED,
            "suggested most multiplications": suggested_limits(outcomes),
        },
        rows=[_row(outcome) for outcome in outcomes],
    )


def _row(outcome: Outcome) -> dict[str, object]:
    cell = outcome.cell
    return {
        "type": cell.dtype,
        "mix": cell.mix,
        "size": cell.size,
        "products": cell.products,
        **{f"{name} us": outcome.medians.get(name, float("nan")) for name in NAMES},
        "loop host": outcome.host["loop"],
        "at once host": outcome.host[outcome.at_once],
        "loop/at once": outcome.gain.median,
        "low": outcome.gain.low,
        "high": outcome.gain.high,
        "chosen": outcome.at_once if outcome.is_chosen else "loop",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES, help="only these types")
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS, help="only so many products")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="only these sizes")
    parser.add_argument("--seconds", type=float, default=300.0, help="no cell begins later (default: %(default)s)")
    options = options_of(parser, arguments)
    if min(*options.counts, *options.sizes) < 1:
        parser.error("--counts and --sizes are 1 or more")
    if say_no_device():
        return NO_DEVICE
    return finish(lambda: measure(options), options, uses_device=True)


if __name__ == "__main__":
    sys.exit(main())
