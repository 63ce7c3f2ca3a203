"""The kinds of value that a setting can have: what each allows, and how it is read from text."""

import math
import operator
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

__all__ = [
    "Kind",
    "SettingValue",
    "address",
    "boolean",
    "choice",
    "file_name",
    "integer",
    "names",
    "number",
    "verbosity",
]

SettingValue = bool | int | float | str | tuple[str, ...] | None

_BOOLEANS = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
_LARGEST_VERBOSITY = 3
# Bounded, so that no text can ask for a giant integer.
_DIGITS = re.compile(r"[0-9]{1,19}")
_DECIMAL = re.compile(r"(?=.{1,40}\Z)(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})")
_LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Kind:
    """What a setting may hold.

    Attributes
    ----------
    name : str
        One word for the documentation and the schema.
    allowed : str
        What is allowed, as a phrase that follows `allowed:`.
    parse : callable
        Takes a text of the environment, returns the value in the one form in which it is kept.
    check : callable
        Does the same for a value that a caller gave. Both raise `TypeError`, `ValueError` or `OverflowError`
        for what is not allowed; the setting says the rest.
    choices : tuple of str
        Every allowed word, where they can be counted.
    largest : int, float or None
        The upper bound of a number, whose lower bound is 0.
    """

    name: str
    allowed: str
    parse: Callable[[str], SettingValue]
    check: Callable[[object], SettingValue]
    choices: tuple[str, ...] = ()
    largest: float | None = None


def boolean_of(text: str) -> bool | None:
    """Return what 1/true/on and 0/false/off mean, in any case; None for every other text."""
    return _BOOLEANS.get(text.lower())


def _lower(text: str) -> str:
    # Some letters beyond ASCII have an ASCII letter as their lower case.
    if not text.isascii():
        raise ValueError(text)
    return text.lower()


def decimal_of(text: str) -> float:
    """Return an unsigned decimal number in ASCII, whatever the locale; `ValueError` for every other text."""
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def real_of(value: object) -> float:
    """Return a finite real number of any numeric type but bool; `TypeError` or `ValueError` for the rest."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(value)
    if not math.isfinite(number := float(value)):
        raise ValueError(value)
    return number


def boolean() -> Kind:
    """Return the kind that is on or off; callers give a `bool`, not a number that stands for one."""

    def parse(text: str) -> bool:
        if (value := boolean_of(text)) is None:
            raise ValueError(text)
        return value

    def check(value: object) -> bool:
        if not isinstance(value, bool):
            raise TypeError(value)
        return value

    return Kind("boolean", "True or False; as text 1, true, on, 0, false or off, in any case", parse, check)


def integer(largest: int = 2**31 - 1, *, none_means: str = "") -> Kind:
    """Return the kind of whole numbers from 0 to `largest`; with `none_means`, callers may give None too."""

    def check(value: object) -> int | None:
        if value is None and none_means:
            return None
        if isinstance(value, bool):
            raise TypeError(value)
        whole = int(operator.index(value))  # type: ignore[arg-type]  # raises TypeError, as it should
        if not 0 <= whole <= largest:
            raise ValueError(whole)
        return whole

    allowed = f"an integer from 0 to {largest}" + (f", or None for {none_means}" if none_means else "")
    return Kind("integer", allowed, lambda text: check(_whole_of(text)), check, largest=largest)


def _whole_of(text: str) -> int:
    if _DIGITS.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


def number(largest: float) -> Kind:
    """Return the kind of finite real numbers from 0 to `largest`."""

    def check(value: object) -> float:
        if not 0 <= (real := real_of(value)) <= largest:
            raise ValueError(value)
        return real + 0.0  # -0.0 becomes 0.0

    return Kind("number", f"a number from 0 to {largest:.17g}", lambda t: check(decimal_of(t)), check, largest=largest)


def verbosity() -> Kind:
    """Return the kind of the diagnostic level, where True and False stand for 1 and 0."""

    def check(value: object) -> int:
        level = int(operator.index(value))  # type: ignore[arg-type]  # raises TypeError, as it should
        if not 0 <= level <= _LARGEST_VERBOSITY:
            raise ValueError(value)
        return level

    def parse(text: str) -> int:
        word = boolean_of(text)
        return check(_whole_of(text) if word is None else word)

    allowed = f"0 to {_LARGEST_VERBOSITY}, True or on for 1, False or off for 0"
    return Kind("integer", allowed, parse, check, largest=_LARGEST_VERBOSITY)


def choice(*words: str) -> Kind:
    """Return the kind of a few words; the environment may give them in any case."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(value)
        return words[words.index(value)]

    return Kind("choice", " or ".join(words), lambda text: check(_lower(text)), check, choices=words)


def file_name(allowed: str, *, empty_means: str = "") -> Kind:
    """Return the kind of a file's path; with `empty_means`, callers may give the empty text too."""

    def check(value: object) -> str:
        path = os.fspath(value)  # type: ignore[call-overload]  # raises TypeError, as it should
        if not isinstance(path, str):
            raise TypeError(value)
        if path == "" and empty_means:
            return path
        if "\0" in path or path.rpartition("/")[2] in {"", ".", ".."}:
            raise ValueError(value)
        return str(path)

    return Kind("file", allowed + (f", or empty for {empty_means}" if empty_means else ""), check, check)


def address(*, empty_means: str) -> Kind:
    """Return the kind of an address to listen on, with its port."""

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise TypeError(value)
        match = _ADDRESS.fullmatch(value) if value else None
        if value and (match is None or int(match[1]) > _LARGEST_PORT):
            raise ValueError(value)
        return str(value)

    return Kind("address", f"HOST:PORT, such as 127.0.0.1:8787, or empty for {empty_means}", check, check)


def names(*known: str) -> Kind:
    """Return the kind of a list of known names, kept in the order given; empty means that all take part."""

    def check(value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [name.strip(" ") for name in _lower(value).split(",")] if value else []
        if not isinstance(value, list | tuple | set | frozenset):
            raise TypeError(value)
        for name in value:
            if not isinstance(name, str) or name not in known:
                raise ValueError(value)
        return tuple(dict.fromkeys(sorted(value) if isinstance(value, set | frozenset) else value))

    allowed = f"names with commas between, of {', '.join(known)}; empty for all"
    return Kind("names", allowed, check, check)
