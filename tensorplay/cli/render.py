"""How numbers and foreign text are shown: pure functions from values to short, printable text."""

import math
from collections.abc import Sequence

__all__ = ["bar", "count", "duration", "multiple", "printable", "rate", "spread"]

MISSING = "-"
"""Stands for a value that is not known."""

_TIME_UNITS = (("ns", 1e-6), ("us", 1e-3), ("ms", 1.0), ("s", 1e3))
_RATE_UNITS = (("MFLOP/s", 1e6), ("GFLOP/s", 1e9), ("TFLOP/s", 1e12), ("PFLOP/s", 1e15))


def duration(milliseconds: float | None) -> str:
    """Return a time with the unit that reads best, in three significant digits; `-` for one that was not measured."""
    if not milliseconds:
        return MISSING
    return _scaled(milliseconds, _TIME_UNITS)


def rate(flops: int, milliseconds: float | None) -> str:
    """Return how many floating-point operations a second that is; `-` for a time that was not measured."""
    if not milliseconds:
        return MISSING
    return _scaled(flops / (milliseconds / 1e3), _RATE_UNITS)


def multiple(factor: float | None) -> str:
    """Return a gain as `1.23x`."""
    return MISSING if factor is None else f"{_significant(factor)}x"


def spread(low: float, middle: float, high: float) -> str:
    """Return half the distance from low to high as a percentage of the middle, `±3.1%`."""
    if middle <= 0:
        return MISSING
    share = (high - low) / 2 / middle
    if share > 1:
        return "±over 100%"
    return f"±{share:.1%}" if share < 0.0995 else f"±{share:.0%}"


def bar(share: float, width: int, *, blocks: bool) -> str:
    """Return a bar that fills the share of the width, in eighths of a letter with `blocks`, else in `#`."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if not blocks:
        return "#" * max(round(eighths / 8), int(eighths > 0))
    whole, rest = divmod(eighths, 8)
    return "\N{FULL BLOCK}" * whole + (chr(ord("\N{FULL BLOCK}") + 8 - rest) if rest else "")


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun, `1 line` or `2 lines`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str, longest: int | None = None) -> str:
    """Return text from a file or the environment as one line that no terminal takes for a command.

    Whatever is not printable (control and formatting characters, line ends, lone surrogates) becomes a backslash
    escape. What exceeds `longest` characters is cut, and says so.
    """
    if longest is not None:
        # An escape is no shorter than what it stands for, and a line of a file may be very long.
        text = text[: longest + 1]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if longest is not None and len(text) > longest:
        return text[: max(longest - 3, 0)] + "..."
    return text


def _scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    for unit, size in units[:-1]:
        # Decided on what is shown: 999.7 us would read "1000 us".
        if value / size < 999.5:
            return f"{_significant(value / size)} {unit}"
    unit, size = units[-1]
    return f"{_significant(value / size)} {unit}"


def _significant(value: float) -> str:
    """Return three significant digits, without an exponent where a person would write none."""
    if value == 0:
        return "0"
    if not math.isfinite(value) or not 0.1 <= value < 1e6:
        return f"{value:.3g}"
    for below, digits in ((9.995, 2), (99.95, 1)):
        if value < below:
            return f"{value:.{digits}f}"
    return f"{value:.0f}"
