"""Print what pyproject.toml asks for, without TensorPlay itself, so that an image can keep it in a layer of its own.

The arguments are the extras that are wanted too.
"""

import sys
import tomllib
from pathlib import Path


def requirements(document: str, extras: list[str]) -> list[str]:
    """Return the requirements of a pyproject.toml and those of the extras, in its order."""
    project = tomllib.loads(document)["project"]
    optional = project["optional-dependencies"]
    unknown = [extra for extra in extras if extra not in optional]
    if unknown:
        raise SystemExit(f"pyproject.toml has no extra {', '.join(unknown)}; it has {', '.join(optional)}")
    return [*project["dependencies"], *(each for extra in extras for each in optional[extra])]


if __name__ == "__main__":
    print("\n".join(requirements(Path("pyproject.toml").read_text(encoding="utf-8"), sys.argv[1:])))
