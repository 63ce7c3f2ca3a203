"""Calling a function in a fresh process, so that nothing learned, loaded or warmed here helps it."""

import importlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["FreshProcessError", "call_in_fresh_process", "clean_environment"]

_PREFIX = "TP_TUNABLEOP_"


class FreshProcessError(RuntimeError):
    """The function failed in its process; the message holds what that wrote to standard error."""


def clean_environment(**settings: str) -> dict[str, str]:
    """Return this process's environment without TensorPlay's variables, then with the settings named, unprefixed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
    return kept | {_PREFIX + name: value for name, value in settings.items()}


def call_in_fresh_process(
    function: Callable[..., object],
    *,
    directory: str | os.PathLike[str],
    settings: Mapping[str, str] | None = None,
    **arguments: object,
) -> Any:
    """Return what `function(**arguments)` returns in a new interpreter; both sides pass as JSON.

    Parameters
    ----------
    function : callable
        Of the top level of a module beside the benchmarks.
    directory : path
        The working directory there: where the results file is by default.
    settings : mapping, optional
        TensorPlay's variables without their prefix; those of this process are not passed on.

    Raises
    ------
    FreshProcessError
        When it raised there.
    """
    module = Path(inspect.getfile(function)).resolve()
    command = (sys.executable, __file__, str(module), function.__name__)
    done = subprocess.run(
        command,
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        cwd=directory,
        env=clean_environment(**(settings or {})),
        check=False,
    )
    if done.returncode != 0:
        raise FreshProcessError(f"{module.name}: {function.__name__} failed:\n{done.stderr}")
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _answer(path: str, name: str) -> None:
    module = Path(path)
    # Beside the script's own folder, where the interpreter looks first, stand the modules of this package.
    sys.path[0] = str(module.parent)
    function = getattr(importlib.import_module(module.stem), name)
    answer = function(**json.load(sys.stdin))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    _answer(*sys.argv[1:])
