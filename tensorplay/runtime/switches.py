"""The settings of a context as the operations that the seeds name."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from tensorplay.errors import SettingError
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.settings import Origin, Settings, SettingState
from tensorplay.runtime.verbose import VerboseLog

__all__ = ["Switches"]


class Switches:
    """Live settings: each is read from the environment when this is made, and overridden by a call.

    Parameters
    ----------
    environ : mapping
        The environment; read once, here.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.listeners = Listeners()
        self._settings = Settings(environ)
        self._verbose_log = VerboseLog(self._settings)
        self.listeners.add(self._verbose_log)

    def enable(self, val: bool = True) -> None:
        """Turn the feature on or off: whether products consult the results at all."""
        self._settings.set("enabled", val)

    def disable(self) -> None:
        """Turn the feature off."""
        self.enable(False)  # noqa: FBT003 - the seed's signature

    def is_enabled(self) -> bool:
        """Return whether the feature is on."""
        return self._settings.enabled

    def tuning_enable(self, val: bool = True) -> None:
        """Control whether a product without a winner is measured."""
        self._settings.set("tuning", val)

    def tuning_disable(self) -> None:
        """Stop measuring; what has no winner runs the first choice."""
        self.tuning_enable(False)  # noqa: FBT003 - the seed's signature

    def tuning_is_enabled(self) -> bool:
        """Return whether products without a winner are measured."""
        return self._settings.tuning

    def record_untuned_enable(self, val: bool = True) -> None:
        """Control whether signatures that ran without a winner are logged to the untuned file."""
        self._settings.set("record_untuned", val)

    def record_untuned_disable(self) -> None:
        """Stop logging untuned signatures."""
        self.record_untuned_enable(False)  # noqa: FBT003 - the seed's signature

    def record_untuned_is_enabled(self) -> bool:
        """Return whether untuned signatures are logged."""
        return self._settings.record_untuned

    def set_verbose(self, val: bool | int = True) -> None:
        """Set the diagnostic level: False or 0 silent, True or 1 state and files, 2 each tuning, 3 each candidate."""
        self._settings.set("verbose", val)

    def is_verbose(self) -> bool:
        """Return whether any diagnostics are written."""
        return self._settings.verbose > 0

    def set_max_tuning_duration(self, ms: int) -> None:
        """Bound the time spent timing one candidate, in milliseconds; 0 means no limit."""
        self._settings.set("max_tuning_duration_ms", ms)

    def get_max_tuning_duration(self) -> int:
        """Return the time limit for one candidate in milliseconds; 0 means none."""
        return self._settings.max_tuning_duration_ms

    def set_max_tuning_samples(self, n: int) -> None:
        """Bound the timed samples of one candidate; 0 means no limit."""
        self._settings.set("max_tuning_samples", n)

    def get_max_tuning_samples(self) -> int:
        """Return the sample limit for one candidate; 0 means none."""
        return self._settings.max_tuning_samples

    def set_max_tuning_iterations(self, n: int) -> None:
        """Do as `set_max_tuning_samples`, by the peer's name."""
        self.set_max_tuning_samples(n)

    def get_max_tuning_iterations(self) -> int:
        """Do as `get_max_tuning_samples`, by the peer's name."""
        return self.get_max_tuning_samples()

    def set_rotating_buffer_size(self, mib: int | None) -> None:
        """Set the pool that operands rotate through while timed, in MiB; 0 turns that off, None is the default."""
        self._settings.set("rotating_buffer_size", mib)

    def set_numerical_check_tolerances(
        self,
        enable: bool,
        atol: float | None = None,
        rtol: float | None = None,
    ) -> None:
        """Turn the comparison of results on or off; without tolerances, the data type and k decide them."""
        if (atol is None) != (rtol is None):
            raise SettingError(f"atol is {atol} and rtol is {rtol}; give both, or neither for tolerances by data type")
        bounds = None if atol is None else (atol, rtol)
        self._settings.set("numerical_check", enable if bounds is None or not enable else bounds)

    def configure(self, **settings: object) -> AbstractContextManager[None]:
        """Return a context manager that sets what is named and restores it, value and origin, at the end."""
        return self._settings.scope(**settings)

    def change_setting(self, name: str, value: object, *, origin: Origin = "api") -> None:
        """Set one setting by name; `SettingError` when there is none, or the value is not allowed."""
        self._settings.set(name, value, origin=origin)

    def settings(self) -> list[SettingState]:
        """Return every setting with its value, where that came from, and its environment variable."""
        return self._settings.describe()
