"""Runs every benchmark, each in a process of its own, and says at the end which goals were reached."""

import subprocess
import sys
from pathlib import Path

from harness.command import MISSED
from harness.cuda_command import NO_DEVICE

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run them all with the arguments given; return the exit status, worst first: 1 when one failed."""
    outcomes: dict[str, int] = {}
    for script in sorted(HERE.glob("bench_*.py")):
        sys.stdout.write(f"\n== {script.stem}\n")
        sys.stdout.flush()
        outcomes[script.stem] = subprocess.run((sys.executable, str(script), *sys.argv[1:]), check=False).returncode
    sys.stdout.write("\n")
    for name, status in outcomes.items():
        word = {0: "reached", MISSED: "MISSED", NO_DEVICE: "not run, there is no device"}.get(
            status, f"FAILED with status {status}"
        )
        sys.stdout.write(f"{name:24}{word}\n")
    if any(status not in {0, MISSED, NO_DEVICE} for status in outcomes.values()):
        return 1
    return MISSED if MISSED in outcomes.values() else 0


if __name__ == "__main__":
    sys.exit(main())
