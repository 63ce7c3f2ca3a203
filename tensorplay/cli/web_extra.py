"""What the commands need of the `web` extra, and what they say without it."""

from importlib import import_module
from typing import Any

import click

__all__ = ["imported_web"]


def imported_web(name: str) -> Any:
    """Return a module that needs the extra; a `ClickException` that says how to install it when it is not there."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "tensorplay":
            raise
        raise click.ClickException(f"{error.name} is not installed; run: pip install 'tensorplay[web]'") from None
