"""Runs tests for a device on the stand-in libraries; run by `test_checking.py` in a process of its own."""

import ctypes
import sys
from pathlib import Path

import pytest

from tensorplay.backends.cublaslt import compiling

TESTS = [str(Path(__file__).parents[3] / "gpu" / name) for name in ("test_checking.py", "test_scratch.py")]
# The stand-in multiplies slowly.
SHORT = "not offer and not deterministic and not 16384 and not 8192"


def main(folder: Path) -> int:
    """Load the stand-ins and run the tests; return how that ended."""
    for name in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13"):
        ctypes.CDLL(str(folder / name))
    # The stand-in driver runs no machine code.
    setattr(compiling, "machine_code", lambda *_: b"code")  # noqa: B010 - it is no plain function
    settings = folder / "pytest.ini"
    settings.write_text("[pytest]\nmarkers = timeout: of the tests on a device\n")
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", f"--rootdir={folder}", "-k", SHORT]
    return pytest.main(["-c", str(settings), *options, *TESTS])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
