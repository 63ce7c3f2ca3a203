"""One setting as it is declared, and how its values are shown."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tensorplay.errors import SettingError
from tensorplay.runtime.setting_kind import Kind, SettingValue

__all__ = ["PREFIX", "Setting", "nearest", "shown"]

PREFIX = "TP_TUNABLEOP_"

_LONGEST_SHOWN = 60


def shown(value: object) -> str:
    """Return the value as text that is short, on one line and free of control characters."""
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_SHOWN else value[: _LONGEST_SHOWN - 3] + "...")
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, tuple) and all(isinstance(part, str) for part in value):
        return shown(",".join(value))
    return f"a value of type {type(value).__name__}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` is most likely a slip of, None when none is near."""
    # Bounded, since the comparison takes time with the square of the length.
    return next(iter(difflib.get_close_matches(name[:_LONGEST_SHOWN], known, n=1)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting's declaration: what documentation, command line, schema and dashboard are made from.

    Attributes
    ----------
    name : str
        As `configure` takes it.
    kind : Kind
        Which values it may have.
    default : bool, int, float, str, tuple of str, or None
        Its value until something else is given.
    help : str
        What it does, with units.
    device : str
        `all`, or the kind of device that it acts on: `cuda`.
    alias : str
        A second name, the peer's, that the environment may use; empty for none.

    Raises
    ------
    SettingError
        When the default is not allowed, or not in the form in which it would be kept.
    """

    name: str
    kind: Kind
    default: SettingValue
    help: str
    device: Literal["all", "cuda"] = "all"
    alias: str = ""

    def __post_init__(self) -> None:
        kept = self.check(self.default)
        if kept != self.default or type(kept) is not type(self.default):
            raise SettingError(f"the default of {self.name} is {self.default!r}; it would be kept as {kept!r}")

    @property
    def variable(self) -> str:
        """Return the environment variable that gives the initial value."""
        return PREFIX + self.name.upper()

    @property
    def variables(self) -> tuple[str, ...]:
        """Return every environment variable that is read, the one that wins first."""
        return (self.variable, PREFIX + self.alias) if self.alias else (self.variable,)

    @property
    def allowed(self) -> str:
        """Return what is allowed, as a phrase that follows `allowed:`."""
        return self.kind.allowed

    def parse(self, text: str) -> SettingValue:
        """Return the value of a text from the environment, where an empty one is none; else `SettingError`."""
        if not text:
            raise self._refusal(text)
        try:
            return self.kind.parse(text)
        except (TypeError, ValueError, OverflowError):
            raise self._refusal(text) from None

    def check(self, value: object) -> SettingValue:
        """Return a caller's value in the one form in which it is kept; `SettingError` when it is not allowed."""
        try:
            return self.kind.check(value)
        except (TypeError, ValueError, OverflowError):
            raise self._refusal(value) from None

    def _refusal(self, value: object) -> SettingError:
        return SettingError(f"{self.name} was given {shown(value)}; allowed: {self.allowed}")
