"""The live settings: read from the environment once, overridden by calls, each knowing where its value came from."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, NamedTuple, NoReturn, cast

from tensorplay.errors import SettingWarning
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.environment import SettingProblem, read_environment
from tensorplay.runtime.listeners import SETTING, Listeners
from tensorplay.runtime.notice import warn
from tensorplay.runtime.setting_kind import SettingValue
from tensorplay.runtime.settings_table import SETTINGS, setting_of

__all__ = ["Origin", "SettingState", "Settings"]

Origin = Literal["default", "environment", "api", "rest"]
_Change = tuple[str, SettingValue, SettingValue]


class SettingState(NamedTuple):
    """One setting as it stands."""

    name: str
    value: SettingValue
    origin: Origin
    variable: str
    default: SettingValue
    help: str
    allowed: str
    device: str


class _Layer(NamedTuple):
    """A value, and the scope that holds it in place; the lowest layer of a setting has none."""

    value: SettingValue
    origin: Origin
    scope: object


class Settings:
    """The value of every setting, as plain attributes; `set` and `scope` change them, in any number of threads.

    What the environment gives in vain is warned of (`SettingWarning`), kept in `problems`, and ignored.

    Parameters
    ----------
    environ : mapping
        The environment; read once, here.
    """

    enabled: bool
    tuning: bool
    record_untuned: bool
    verbose: int
    verbose_filename: str
    max_tuning_duration_ms: int
    max_tuning_samples: int
    max_warmup_duration_ms: int
    max_warmup_samples: int
    filename: str
    untuned_filename: str
    numerical_check: str
    icache_flush_enabled: bool
    rotating_buffer_size: int | None
    candidates: str
    sources: tuple[str, ...]
    families: str
    mode: str
    total_tuning_seconds: float
    max_search_seconds: float
    min_gain: float
    workspace_mib: int
    deterministic: bool
    dashboard: str

    _lock: ForkSafeLock
    _layers: dict[str, list[_Layer]]
    _problems: tuple[SettingProblem, ...]
    _listeners: Listeners

    def __init__(self, environ: Mapping[str, str]) -> None:
        given, problems = read_environment(environ)
        layers = {
            setting.name: [
                _Layer(given[setting.name], "environment", None)
                if setting.name in given
                else _Layer(setting.default, "default", None)
            ]
            for setting in SETTINGS
        }
        # Plain attributes are the cheapest to read, and hot code reads them; `__setattr__` is for everyone else.
        vars(self).update(_lock=ForkSafeLock(), _layers=layers, _problems=tuple(problems), _listeners=Listeners())
        for name in layers:
            self._expose(name)
        for problem in problems:
            warn(str(problem), SettingWarning)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} is changed by `set({name!r}, ...)`, which checks the value")

    def get(self, name: str) -> SettingValue:
        """Return the value of the setting called `name`; `SettingError` when there is none."""
        value: SettingValue = getattr(self, setting_of(name).name)
        return value

    def origin(self, name: str) -> Origin:
        """Return where the value of the setting called `name` came from; `SettingError` when there is none."""
        return self._layers[setting_of(name).name][-1].origin

    def set(self, name: str, value: object, *, origin: Origin = "api") -> None:
        """Change one setting, for good or until the innermost scope that changed it ends.

        By another origin than `api` it is for good: no client knows of the scopes of a program. What has the value
        already keeps its origin, unless it goes back to what it was at the start.

        Raises
        ------
        SettingError
            When there is no such setting, or the value is not allowed.
        """
        checked = setting_of(name).check(value)
        with self._lock:
            layers = self._layers[name]
            for place in range(len(layers) - 1 if origin == "api" else 0, len(layers)):
                if origin != "rest" or layers[place].value != checked:
                    layers[place] = _Layer(checked, origin, layers[place].scope)
            changes = self._expose(name)
        self._tell(changes)

    def scope(self, /, **values: object) -> AbstractContextManager[None]:
        """Return a context manager that sets the values, and at its end undoes that: value and origin.

        Scopes may nest, and overlap in other threads: one that ends leaves in place what a later one has set.
        Everything is checked by this call, before anything changes; `SettingError` as from `set`.
        """
        return self._held({name: setting_of(name).check(value) for name, value in values.items()})

    def on_change(self, callback: Callable[[str, SettingValue, SettingValue], None]) -> Callable[[], None]:
        """Call `callback(name, old, new)` after each change of a value; return what stops that.

        It is called by the thread that made the change, with no lock held. Of two changes at once, the later
        may be told first: where only the last value counts, read it. What it raises is logged and dropped.
        """

        def listen(event: str, detail: Mapping[str, object]) -> None:
            del event
            callback(*cast("_Change", detail["change"]))

        return self._listeners.add(listen)

    def describe(self) -> list[SettingState]:
        """Return every setting as it stands at one moment, in the order of the table."""
        with self._lock:
            tops = {name: layers[-1] for name, layers in self._layers.items()}
        return [
            SettingState(
                name=setting.name,
                value=tops[setting.name].value,
                origin=tops[setting.name].origin,
                variable=setting.variable,
                default=setting.default,
                help=setting.help,
                allowed=setting.allowed,
                device=setting.device,
            )
            for setting in SETTINGS
        ]

    def problems(self) -> list[SettingProblem]:
        """Return every variable of the environment that was ignored: its name, its text, and the reason."""
        return list(self._problems)

    @contextmanager
    def _held(self, values: Mapping[str, SettingValue]) -> Iterator[None]:
        scope = object()
        try:
            with self._lock:
                changes = []
                for name, value in values.items():
                    self._layers[name].append(_Layer(value, "api", scope))
                    changes += self._expose(name)
            self._tell(changes)
            yield
        finally:
            with self._lock:
                changes = []
                for name in values:
                    self._layers[name] = [layer for layer in self._layers[name] if layer.scope is not scope]
                    changes += self._expose(name)
            self._tell(changes)

    def _expose(self, name: str) -> list[_Change]:
        """Make the topmost layer the attribute that is read; return the change, if it is one."""
        old, new = vars(self).get(name), self._layers[name][-1].value
        vars(self)[name] = new
        return [] if old == new else [(name, old, new)]

    def _tell(self, changes: list[_Change]) -> None:
        for change in changes:
            self._listeners.tell(SETTING, change=change)
