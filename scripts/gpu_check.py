"""Checks the NVIDIA backend on this machine step by step, going on after failures: one run tells all that is wrong.

`python scripts/gpu_check.py` prints one line a step; `--verbose` adds the traceback of each failure, `--only WORD`
runs the steps whose name holds it.
"""  # noqa: INP001 - a script, no package

import argparse
import sys
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu_steps.common import STEPS

# Each adds its steps, in this order.
for _module in ("library", "algorithms", "values", "timing", "capture"):
    import_module(f"gpu_steps.{_module}")


def main() -> int:
    """Run every step and return the number that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = 0
    steps = [each for each in STEPS if options.only.lower() in each[0].lower()]
    for name, function in steps:
        start = time.perf_counter()
        try:
            mark, finding = "ok  ", function()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next step is to be tried
            mark, finding = "FAIL", f"{type(error).__name__}: {error}"
            failed += 1
            if options.verbose:
                traceback.print_exc()
        print(f"{mark} {name} [{time.perf_counter() - start:.1f} s]: {finding}", flush=True)
    print(f"{len(steps) - failed} of {len(steps)} steps passed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
