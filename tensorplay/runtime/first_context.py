"""Who is told when a process makes its context: layers above, which this one must not know."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorplay.runtime.settings import SettingState

__all__ = ["context_made", "on_first_context"]

_callbacks: list[Callable[[str], None]] = []


def on_first_context(callback: Callable[[str], None]) -> None:
    """Call `callback` with the setting `dashboard` when this process makes its context, if it is not empty.

    It runs within the first product, or whatever touches the context first, and must not raise.
    """
    _callbacks.append(callback)


def context_made(settings: "Iterable[SettingState]") -> None:
    """Tell those who want to know."""
    address = next(str(setting.value) for setting in settings if setting.name == "dashboard")
    for callback in _callbacks if address else ():
        callback(address)
