"""Checks the NVIDIA backend step by step, each in a process of its own, so that one run tells all that is wrong.

A fault on the device ends its process only. In a step of many cases those after the one that faulted run in another
process, and that case runs once more alone with `CUDA_LAUNCH_BLOCKING=1`.

`python scripts/gpu_check.py` prints one line a step; `--verbose` adds the traceback of each failure, `--only WORD`
runs the steps whose name holds it, `--here NAME` runs one in this process.
"""  # noqa: INP001 - a script, no package

import argparse
import os
import subprocess
import sys
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu_steps.common import STEPS, BrokenContextError, Cases

# Each adds its steps, in this order.
for _module in ("library", "kernels", "algorithms", "values", "timing", "capture"):
    import_module(f"gpu_steps.{_module}")

_BROKEN = 100
"""Exit code of a process whose context broke; the number of the case is added."""

_LIMIT_S = 150


def main() -> int:
    """Run every step and return the number that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--here", default="")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=Cases.count)
    options = parser.parse_args()
    Cases.start, Cases.count = options.start, options.count
    if options.here:
        return run_here(options.here, verbose=options.verbose)
    names = [name for name, _ in STEPS if options.only.lower() in name.lower()]
    failed = [name for name in names if not run_apart(name, verbose=options.verbose)]
    print(f"{len(names) - len(failed)} of {len(names)} steps passed")
    for name in failed:
        print(f"failed: {name}")
    return len(failed)


def run_here(name: str, *, verbose: bool) -> int:
    """Run a step in this process; return 0, 1 for a failure, or `_BROKEN` and the case that broke the context."""
    warnings.simplefilter("ignore")
    start, code = time.perf_counter(), 0
    try:
        mark, finding = "ok  ", dict(STEPS)[name]()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        mark, finding = "FAIL", f"{type(error).__name__}: {error}"
        code = _BROKEN + error.case if isinstance(error, BrokenContextError) else 1
        if verbose:
            traceback.print_exc()
    print(f"{mark} {name} [{time.perf_counter() - start:.1f} s]: {finding}", flush=True)
    return code


def run_apart(name: str, *, verbose: bool) -> bool:
    """Run one step in processes of its own and return whether it passed."""
    start, passed = 0, True
    while True:
        code = _child(name, start=start, verbose=verbose)
        passed = passed and code == 0
        if code < _BROKEN:
            return passed
        case = code - _BROKEN
        print(f"     {name}: case {case} once more, alone and blocking:", flush=True)
        _child(name, start=case, count=1, verbose=True, blocking=True)
        start = case + 1


def _child(name: str, *, start: int, verbose: bool, count: int = Cases.count, blocking: bool = False) -> int:
    command = [sys.executable, __file__, "--here", name, "--start", str(start), "--count", str(count)]
    environment = os.environ | ({"CUDA_LAUNCH_BLOCKING": "1"} if blocking else {})
    try:
        done = subprocess.run(  # noqa: S603 - this very script
            command + ["--verbose"] * verbose, env=environment, timeout=_LIMIT_S, check=False, stderr=subprocess.STDOUT
        )
    except subprocess.TimeoutExpired:
        print(f"FAIL {name}: it took more than {_LIMIT_S} s", flush=True)
        return 1
    if done.returncode < 0:
        print(f"FAIL {name}: its process was ended by signal {-done.returncode}", flush=True)
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
