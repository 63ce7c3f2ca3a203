"""The environment's part in the settings: which variables were taken, which ignored, and why."""

from collections.abc import Mapping
from typing import NamedTuple

from tensorplay.errors import SettingError
from tensorplay.runtime.setting import PREFIX, Setting, nearest, shown
from tensorplay.runtime.setting_kind import SettingValue
from tensorplay.runtime.settings_table import SETTINGS

__all__ = ["SettingProblem", "read_environment"]


class SettingProblem(NamedTuple):
    """A variable that was ignored; each text is short, on one line and safe to print."""

    variable: str
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.variable}={self.text} is ignored: {self.reason}"


def read_environment(environ: Mapping[str, str]) -> tuple[dict[str, SettingValue], list[SettingProblem]]:
    """Return the values that the environment gives, by setting, and every variable of ours that it gives in vain."""
    # `os.environ` may change under another thread: one look at each name, and none that fails.
    texts = {name: environ.get(name) for name in sorted(environ) if name.startswith(PREFIX)}
    ours = {name: text for name, text in texts.items() if text is not None}
    values: dict[str, SettingValue] = {}
    problems: list[SettingProblem] = []
    for setting in SETTINGS:
        parsed, refused = _parse(setting, ours)
        if parsed:
            values[setting.name] = next(iter(parsed.values()))
        kept = f"{setting.name} stays {shown(values.get(setting.name, setting.default))}"
        for variable in refused:
            why = f"allowed: {setting.allowed}" if ours[variable] else "it is empty, unset it for the default"
            problems.append(SettingProblem(variable, shown(ours[variable]), f"{why}; {kept}"))
        problems += [
            SettingProblem(variable, shown(ours[variable]), f"{setting.variable} wins; {kept}")
            for variable, value in parsed.items()
            if value != values[setting.name]
        ]
    return values, problems + _unknown(ours)


def _parse(setting: Setting, ours: Mapping[str, str]) -> tuple[dict[str, SettingValue], list[str]]:
    """Return what each variable of the setting says, the one that wins first, and those that do not parse."""
    parsed: dict[str, SettingValue] = {}
    refused: list[str] = []
    for variable in setting.variables:
        if variable in ours:
            try:
                parsed[variable] = setting.parse(ours[variable])
            except SettingError:
                refused.append(variable)
    return parsed, refused


def _unknown(ours: Mapping[str, str]) -> list[SettingProblem]:
    known = {variable.removeprefix(PREFIX): variable for setting in SETTINGS for variable in setting.variables}
    problems = []
    for variable, text in ours.items():
        name = variable.removeprefix(PREFIX)
        if name not in known:
            near = nearest(name.upper(), known)
            hint = f"did you mean {known[near]}?" if near else "`tensorplay doctor` lists the settings"
            printable = variable if variable.isprintable() and len(variable) < 60 else shown(variable)
            problems.append(SettingProblem(printable, shown(text), f"no such setting; {hint}"))
    return problems
