"""Ticks of an axis: few, at round numbers, in the unit that suits them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Axis", "Tick", "percent_axis", "time_axis"]

_UNITS = ((1e3, "s"), (1.0, "ms"), (1e-3, "µs"), (1e-6, "ns"))
_MOST = 5.5
# What is written at a tick is up to so wide, of 100, on a telephone.
_LABEL = 7.0


class Tick(NamedTuple):
    """A tick: where, from 0 to 100, and what is written there."""

    x: float
    text: str


class Axis(NamedTuple):
    """The ticks of an axis, and the unit of their numbers."""

    ticks: Sequence[Tick]
    unit: str


def time_axis(low_ms: float, high_ms: float, *, left: float = 0.0, right: float = 100.0) -> Axis:
    """Return the axis of times from `low_ms` to `high_ms`, drawn from `left` to `right`."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if high_ms >= scale), _UNITS[-1])
    return Axis(_ticks(low_ms / scale, high_ms / scale, left, right), unit)


def percent_axis(low: float, high: float, *, left: float = 0.0, right: float = 100.0) -> Axis:
    """Return the axis of shares from `low` to `high`, as percent."""
    return Axis(_ticks(100 * low, 100 * high, left, right), "%")


def _ticks(low: float, high: float, left: float, right: float) -> list[Tick]:
    span = high - low
    step = _step(span) if span > 0 else 0.0
    if step <= 0 or not math.isfinite(step) or low + step == low:
        return [Tick(round((left + right) / 2 if span else left + _LABEL, 2), f"{low:.4g}")]
    decimals = max(0, -math.floor(math.log10(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    places = [(number, left + (right - left) * (number * step - low) / span) for number in range(first, last + 1)]
    # What is written at either end would be cut off.
    return [
        Tick(round(x, 2), f"{number * step:,.{decimals}f}")
        for number, x in places
        if left + _LABEL / 2 <= x <= right - _LABEL / 2
    ]


def _step(span: float) -> float:
    """Return the smallest round step of which few fit into a span."""
    power = 10.0 ** math.floor(math.log10(span))
    return next((power * part for part in (0.2, 0.5, 1) if span <= _MOST * power * part), power * 2)
