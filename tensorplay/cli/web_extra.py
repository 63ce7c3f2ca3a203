"""What the commands need of the `web` extra, and what they say without it."""

from importlib import import_module
from typing import Any

import click

from tensorplay.service.autostart import HOW_TO_INSTALL

__all__ = ["imported_web"]


def imported_web(name: str) -> Any:
    """Return a module that needs the extra; a `ClickException` that says how to install it when it is not there."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = (error.name or "tensorplay").partition(".")[0]
        if package == "tensorplay":
            raise
        raise click.ClickException(f"{package} is not installed; {HOW_TO_INSTALL}") from None
