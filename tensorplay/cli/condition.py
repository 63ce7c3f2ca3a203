"""Conditions of `tensorplay show --where`: a key, a comparison and a value, such as `m>=16` or `kernel=host_*`."""

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tensorplay.cli.product_row import ProductRow

__all__ = ["NUMBER_KEYS", "TEXT_KEYS", "Condition", "parse_condition"]

TEXT_KEYS = ("op", "params", "kernel", "dtype", "device", "flags")
NUMBER_KEYS = {"m": "m", "n": "n", "k": "k", "batch": "batch", "flops": "flops", "time": "time_ms"}

_SHAPE = re.compile(r"\s*(?P<key>[a-z]+)\s*(?P<comparison><=|>=|!=|==|=|<|>)\s*(?P<value>.*?)\s*", re.DOTALL)
_NUMBER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """What a row must fulfil to be shown; a row without such a value never does."""

    attribute: str
    holds: Callable[[Any], bool]  # of a text or of a number, as the attribute is

    def __call__(self, row: ProductRow) -> bool:
        """Return whether the row is to be shown."""
        value = getattr(row, self.attribute)
        return value is not None and self.holds(value)


def parse_condition(text: str) -> Condition:
    """Return the condition that the text writes down; `ValueError` when it is none."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no condition; write it as m>=16, dtype=float32 or kernel=host_*")
    key, comparison, value = match["key"], match["comparison"], match["value"]
    if key in NUMBER_KEYS:
        return Condition(NUMBER_KEYS[key], _number_test(comparison, _number(key, value)))
    if key not in TEXT_KEYS:
        raise ValueError(f"{key!r} is no key; allowed: {', '.join((*TEXT_KEYS, *NUMBER_KEYS))}")
    if comparison not in {"=", "==", "!="}:
        raise ValueError(f"{key} is text; compare it with = or != and a pattern, not with {comparison}")
    return Condition(key, _text_test(value, wanted=comparison != "!="))


def _number(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{key} is compared with {text!r}; allowed: a number")
    return number


def _number_test(comparison: str, number: float) -> Callable[[float], bool]:
    compare = _NUMBER[comparison]
    return lambda value: compare(value, number)


def _text_test(pattern: str, *, wanted: bool) -> Callable[[str], bool]:
    return lambda value: fnmatchcase(value, pattern) is wanted
