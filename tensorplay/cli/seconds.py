"""The type of an option that takes seconds."""

import math
from typing import Any

import click

__all__ = ["Seconds"]


class Seconds(click.FloatRange):
    """A range of seconds, which a text like `nan` is not in: no comparison would say so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of seconds; what is none ends the command."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{seconds} is no number of seconds", param, ctx)
        return seconds
