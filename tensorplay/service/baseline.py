"""What each setting goes back to: what the environment said when the program started, else its default."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tensorplay.runtime.environment import read_environment
from tensorplay.runtime.setting_kind import SettingValue
from tensorplay.runtime.settings import Origin, SettingState
from tensorplay.runtime.settings_table import setting_of

__all__ = ["Baseline", "Former"]


class Former(NamedTuple):
    """A value that was there before anybody changed it, and where it came from."""

    value: SettingValue
    origin: Origin


class Baseline:
    """The settings before anybody changed them.

    Parameters
    ----------
    settings : iterable of SettingState
        As they are now: those that nobody has changed yet are kept as they are.
    environ : mapping
        Says the rest. It may have changed since the program started.
    """

    def __init__(self, settings: Iterable[SettingState], environ: Mapping[str, str]) -> None:
        self._kept = {
            each.name: Former(each.value, each.origin) for each in settings if each.origin in {"default", "environment"}
        }
        self._given, _ = read_environment(environ)

    def of(self, name: str) -> Former:
        """Return what a setting goes back to; `SettingError` when there is none of that name."""
        setting = setting_of(name)
        if name in self._kept:
            return self._kept[name]
        if name in self._given:
            return Former(self._given[name], "environment")
        return Former(setting.default, "default")
