"""Runtime control of kernel tuning: switches, budgets, files, and what was found.

Every function acts on the process's one context, `get_tuning_context()`, whose methods have the same names. The
environment (`TP_TUNABLEOP_*`) is read when that context is first touched, by a function here or by the first
product; later calls override it. All may be called from any thread. Nothing here needs CUDA.

Tuning is enabled apart from the feature::

    tunable.enable()           # recorded winners are replayed
    tunable.tuning_disable()   # and nothing is measured: the mode for production
"""

from contextlib import AbstractContextManager

from tensorplay.runtime.process import get_tuning_context
from tensorplay.runtime.rejections import Rejection
from tensorplay.runtime.settings import SettingState

__all__ = [
    "configure",
    "disable",
    "drain",
    "enable",
    "explain",
    "forget",
    "get_filename",
    "get_max_tuning_duration",
    "get_max_tuning_iterations",
    "get_max_tuning_samples",
    "get_rejections",
    "get_results",
    "get_rotating_buffer_size",
    "get_tuning_context",
    "get_untuned",
    "get_validators",
    "is_enabled",
    "is_verbose",
    "override",
    "read_file",
    "record_untuned_disable",
    "record_untuned_enable",
    "record_untuned_is_enabled",
    "set_filename",
    "set_max_tuning_duration",
    "set_max_tuning_iterations",
    "set_max_tuning_samples",
    "set_numerical_check_tolerances",
    "set_rotating_buffer_size",
    "set_verbose",
    "settings",
    "stats",
    "tuning_disable",
    "tuning_enable",
    "tuning_is_enabled",
    "unpin",
    "write_file",
    "write_file_on_exit",
]

# The seeds fix these signatures, positional switches included.


def enable(val: bool = True) -> None:
    """Turn the feature on or off: whether products consult the results at all. Off unless the environment says so."""
    get_tuning_context().enable(val)


def disable() -> None:
    """Turn the feature off."""
    get_tuning_context().disable()


def is_enabled() -> bool:
    """Return whether the feature is on."""
    return get_tuning_context().is_enabled()


def tuning_enable(val: bool = True) -> None:
    """Control whether a product without a winner is measured; on unless the environment says otherwise."""
    get_tuning_context().tuning_enable(val)


def tuning_disable() -> None:
    """Stop measuring; a product without a winner runs the library's first choice."""
    get_tuning_context().tuning_disable()


def tuning_is_enabled() -> bool:
    """Return whether products without a winner are measured."""
    return get_tuning_context().tuning_is_enabled()


def record_untuned_enable(val: bool = True) -> None:
    """Control whether signatures that ran without a winner are logged to the untuned file."""
    get_tuning_context().record_untuned_enable(val)


def record_untuned_disable() -> None:
    """Stop logging untuned signatures."""
    get_tuning_context().record_untuned_disable()


def record_untuned_is_enabled() -> bool:
    """Return whether untuned signatures are logged."""
    return get_tuning_context().record_untuned_is_enabled()


def set_verbose(val: bool | int = True) -> None:
    """Set the diagnostic level: False or 0 silent, True or 1 state and files, 2 each tuning, 3 each candidate."""
    get_tuning_context().set_verbose(val)


def is_verbose() -> bool:
    """Return whether any diagnostics are written."""
    return get_tuning_context().is_verbose()


def set_max_tuning_duration(ms: int) -> None:
    """Bound the time spent timing one candidate, in milliseconds; 0 means no limit, a negative is a ValueError."""
    get_tuning_context().set_max_tuning_duration(ms)


def get_max_tuning_duration() -> int:
    """Return the time limit for one candidate in milliseconds; 0 means none."""
    return get_tuning_context().get_max_tuning_duration()


def set_max_tuning_samples(n: int) -> None:
    """Bound the timed samples of one candidate; 0 means no limit, a negative is a ValueError."""
    get_tuning_context().set_max_tuning_samples(n)


def get_max_tuning_samples() -> int:
    """Return the sample limit for one candidate; 0 means none."""
    return get_tuning_context().get_max_tuning_samples()


def set_max_tuning_iterations(n: int) -> None:
    """Do as `set_max_tuning_samples`, by the peer's name."""
    get_tuning_context().set_max_tuning_iterations(n)


def get_max_tuning_iterations() -> int:
    """Do as `get_max_tuning_samples`, by the peer's name."""
    return get_tuning_context().get_max_tuning_iterations()


def set_rotating_buffer_size(mib: int | None) -> None:
    """Set the pool that operands rotate through while timed, in MiB; 0 turns that off, None is the default."""
    get_tuning_context().set_rotating_buffer_size(mib)


def get_rotating_buffer_size() -> int:
    """Return that pool in MiB; by default twice the last private cache, rounded up."""
    return get_tuning_context().get_rotating_buffer_size()


def set_numerical_check_tolerances(enable: bool, atol: float | None = None, rtol: float | None = None) -> None:
    """Turn the comparison of results on or off; without tolerances, the data type and k decide them."""
    get_tuning_context().set_numerical_check_tolerances(enable, atol, rtol)


def set_filename(name: str, insert_device_ordinal: bool = False) -> None:
    """Send winners to another file. One named before the first product is read there; see `TuningContext`."""
    get_tuning_context().set_filename(name, insert_device_ordinal)


def get_filename() -> str:
    """Return the current device's results file, empty until it is set or first used."""
    return get_tuning_context().get_filename()


def get_results() -> list[tuple[str, str, str, float]]:
    """Return every winner in memory as (op, params, kernel, time in ms), sorted."""
    return get_tuning_context().get_results()


def get_validators() -> list[tuple[str, str]]:
    """Return the (name, value) facts about this build and device that a results file must match."""
    return get_tuning_context().get_validators()


def read_file(filename: str | None = None, *, overwrite: bool = False) -> bool:
    """Merge a results file, the current one unless named; return whether it exists and matches this build."""
    return get_tuning_context().read_file(filename, overwrite=overwrite)


def write_file(filename: str | None = None) -> bool:
    """Rewrite a results file with every winner, merged with what it holds; return whether it was written."""
    return get_tuning_context().write_file(filename)


def write_file_on_exit(val: bool) -> None:
    """Control whether winners that could not be written are tried once more at exit; on unless turned off."""
    get_tuning_context().write_file_on_exit(val)


def get_rejections() -> list[Rejection]:
    """Return the recorded winners that did not run in this process, with the reason of each."""
    return get_tuning_context().get_rejections()


def get_untuned() -> list[tuple[str, str]]:
    """Return the signatures (op, params) that ran without a winner in this process, in the order met."""
    return get_tuning_context().get_untuned()


def stats() -> dict[str, int]:
    """Return how often each thing happened in this process, and how much is left to be measured in the background.

    `replayed`, `first_choice`, `selected_in_process` and `fallback` count calls; `measured`, `queued`, `untuned`,
    `pinned` and `rejected` count signatures, `unexplained` those whose explanation could not be written. `waiting`
    and `measuring` are the signatures in the background now.
    """
    return get_tuning_context().stats()


def settings() -> list[SettingState]:
    """Return every setting with its value, where that came from, and its environment variable."""
    return get_tuning_context().settings()


def explain(op: str, params: str) -> dict[str, object]:
    """Return why a signature runs what it runs: its entry, the candidates, their times, and the margin.

    Of a winner that another process measured, what that process wrote beside the results file.
    """
    return get_tuning_context().explain(op, params)


def forget(op: str, params: str) -> bool:
    """Drop a winner from memory and file, so that its problem is measured again; return whether it was there."""
    return get_tuning_context().forget(op, params)


def override(op: str, params: str, kernel: str) -> None:
    """Record a kernel of your own choice for a signature, in memory and file; raises when it cannot run here."""
    get_tuning_context().override(op, params, kernel)


def drain(timeout: float | None = None) -> bool:
    """Wait until nothing is left to be measured in the background; return whether that came within the seconds given.

    True at once with `MODE=blocking`. Without a timeout it waits for ever where the device is never idle.
    """
    return get_tuning_context().drain(timeout)


def unpin() -> int:
    """Let signatures that were pinned under a graph capture be decided anew; return how many there were."""
    return get_tuning_context().unpin()


def configure(**settings: object) -> AbstractContextManager[None]:
    """Set what is named for the length of a `with` block, and restore values and origins at its end."""
    return get_tuning_context().configure(**settings)
