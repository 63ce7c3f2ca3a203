"""How numbers, times and texts are shown: the filters of the templates."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

__all__ = ["FILTERS", "count", "digits", "duration", "gain", "milliseconds", "moment", "percent", "plain", "size"]

_PLAIN = {"True": "on", "False": "off", "None": "none", "()": "none", "": "none"}
_NAME = re.compile(r"'([\w.+-]*)'")
_NAMES = re.compile(rf"\({_NAME.pattern}(?:, {_NAME.pattern})*,?\)")
_DASH = "–"  # noqa: RUF001 - what stands for nothing in a table


def count(value: float | None) -> str:
    """Return a whole number with commas."""
    return _DASH if value is None else f"{value:,.0f}"


def milliseconds(value: float | None) -> str:
    """Return a time of a kernel with four digits, in the unit that suits it."""
    if value is None or value == 0:
        return _DASH
    if value < 0.001:
        return f"{_digits(value * 1e6, 4)} ns"
    if value < 1:
        return f"{_digits(value * 1e3, 4)} µs"
    return f"{_digits(value, 4)} ms" if value < 1e3 else f"{_digits(value / 1e3, 4)} s"


def digits(value: float | None) -> str:
    """Return a number with three digits, as short as that is."""
    return _DASH if value is None else f"{value:.3g}"


def gain(value: float | None) -> str:
    """Return how many times faster something is."""
    return _DASH if value is None else f"{value:.2f}×"  # noqa: RUF001 - the sign of multiplication


def percent(value: float | None) -> str:
    """Return a share of one."""
    return _DASH if value is None else f"{value:.1%}"


def share(value: float | None) -> str:
    """Return a part of a number, as percent or as so many in a million, which people can picture."""
    if value is None:
        return _DASH
    return f"{100 * value:.2g} %" if value >= 1e-4 else f"{1e6 * value:.2g} ppm"


def signed_percent(value: float | None) -> str:
    """Return a share of one with its sign."""
    return _DASH if value is None else f"{value:+.1%}"


def rate(value: float | None) -> str:
    """Return 10^12 operations a second with three digits, in the unit that suits them."""
    if value is None:
        return _DASH
    if value < 1e-6:
        return f"{_digits(value * 1e9, 3)} kFLOP/s"
    if value < 1e-3:
        return f"{_digits(value * 1e6, 3)} MFLOP/s"
    return f"{_digits(value * 1e3, 3)} GFLOP/s" if value < 1 else f"{_digits(value, 3)} TFLOP/s"


def size(value: float | None) -> str:
    """Return a number of bytes."""
    if value is None:
        return _DASH
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


def duration(value: float | None) -> str:
    """Return a number of seconds as people say it."""
    if value is None:
        return _DASH
    if 0 < value < 1:
        return f"{value * 1e3:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def moment(iso: str | None) -> Markup:
    """Return a point in time that a script may show in another zone."""
    if iso is None:
        return escape(_DASH)
    try:
        shown = datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M:%S UTC")
    except ValueError:
        return escape(iso)
    return Markup('<time datetime="{}">{}</time>').format(iso, shown)


def words(code: str) -> str:
    """Return a name of the API as words."""
    return code.replace("_", " ")


def _digits(value: float, digits: int) -> str:
    """Return a number with so many digits, zeros at its end too: those of a column are compared at a glance."""
    return f"{value:,.0f}" if value >= 10**digits else f"{value:#,.{digits}g}".rstrip(".")


def plain(text: str) -> str:
    """Return a value of an event as people write it: it was written as Python does."""
    if text in _PLAIN:
        return _PLAIN[text]
    names = _NAMES.fullmatch(text)
    return ", ".join(_NAME.findall(text)) if names else text


def file_name(path: str) -> str:
    """Return the last part of a path: folders are nobody's business."""
    return path.rpartition("/")[2]


FILTERS: dict[str, Callable[..., Any]] = {
    "count": count,
    "digits": digits,
    "ms": milliseconds,
    "gain": gain,
    "percent": percent,
    "share": share,
    "signed": signed_percent,
    "rate": rate,
    "size": size,
    "duration": duration,
    "moment": moment,
    "words": words,
    "file_name": file_name,
    "plain": plain,
}
