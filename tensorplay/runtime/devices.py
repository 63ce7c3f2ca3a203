"""The devices of a context: who runs each, which one is current, and where its winners are kept."""

import os
from collections.abc import Mapping
from pathlib import Path

from tensorplay.backends import registry
from tensorplay.backends.base import Backend
from tensorplay.database.csv_text import FORMAT_VALIDATOR
from tensorplay.database.filename import results_name
from tensorplay.database.record import Validator, check_validators
from tensorplay.errors import KernelUnavailableError, TensorPlayError
from tensorplay.gemm import GemmProblem, Signature
from tensorplay.gemm.problem import CPU
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.journal import Journal
from tensorplay.runtime.settings_table import setting_of
from tensorplay.runtime.shared_results import SharedResults
from tensorplay.runtime.switches import Switches

__all__ = ["Devices"]


class Devices(Switches):
    """What a context knows of each device that it meets; the current one is that of the best backend it has met.

    Parameters
    ----------
    environ : mapping
        The environment.
    directory : str or path
        What relative file names are relative to.
    backends : mapping of str to Backend
        The backend of each device that the registry should not be asked for.
    """

    def __init__(
        self, environ: Mapping[str, str], directory: str | os.PathLike[str], backends: Mapping[str, Backend]
    ) -> None:
        super().__init__(environ)
        self._directory = Path(directory)
        self._backends = dict(backends)
        self._devices: dict[str, SharedResults] = {}
        self._journal = Journal()
        self._state_lock = ForkSafeLock()
        self.listeners.defer_under(self._state_lock)
        # Names that `set_filename` was told to insert ordinals into; names from the environment always are.
        self._names_with_ordinal: frozenset[str] = frozenset()

    def set_filename(self, name: str, insert_device_ordinal: bool = False) -> None:
        """Send winners to another file; "" goes back to the default name.

        A file named before the first product is read there; one named later is only written, until `read_file`.
        With `insert_device_ordinal` the ordinal takes the place of `%d` in the base name, or stands before its
        last dot. Relative names are relative to the working directory at first use.
        """
        name = str(setting_of("filename").check(name))
        with_ordinal = frozenset((name,) if insert_device_ordinal and name else ())
        with self._state_lock:
            # Known before the name counts: a winner that is recorded meanwhile goes where it is looked for afterwards.
            self._names_with_ordinal = (self._names_with_ordinal - {name}) | with_ordinal
        # Whoever hears of it may wait for threads that want the lock.
        self._settings.set("filename", name)
        with self.listeners.afterwards(), self._state_lock:
            if self._settings.filename == name:
                self._names_with_ordinal = with_ordinal
            self._redirect()

    def get_filename(self) -> str:
        """Return the current device's results file, empty until it is set or first used."""
        with self._state_lock:
            device = self._current_device()
            return self._results_name(device) if self._settings.filename or self._devices else ""

    def backend(self, device: str) -> Backend:
        """Return who runs products on `device`."""
        return self._backends.get(device) or registry.backend_of(device)

    def _default_backend(self) -> Backend:
        """Return whose current device is the current one: a GPU's backend before the host's, as the registry has it.

        Of those that are here already, whichever came first: a program that multiplies on the host starts no driver.
        """
        # In one step, as in `_met`.
        known = list(self._backends.items())
        of_gpus = (backend for device, backend in known if device != CPU)
        return next(of_gpus, None) or (known[0][1] if known else registry.default_backend())

    def _current_device(self) -> str:
        return self._default_backend().current_device()

    def _likely_backend(self, device: str) -> Backend:
        """Return who runs products on a device that nobody has multiplied on: who does on others of its kind."""
        default = self._default_backend()
        is_of_its_kind = (device == CPU) == (default.current_device() == CPU)
        return self._backends.get(device) or (default if is_of_its_kind else registry.backend_of(device))

    def _backend_of(self, problem: GemmProblem) -> Backend:
        return self._backend_on(problem.device)

    def _backend_on(self, device: str) -> Backend:
        try:
            backend = self.backend(device)
            # A backend that knows its kind of device need not have this one.
            backend.validators(device)
        except TensorPlayError as error:
            raise KernelUnavailableError(f"device {device} is not in this process: {error}") from error
        return backend

    def _met(self) -> list[SharedResults]:
        """Return the results of each device that was met."""
        # In one step: a signal handler on this thread may multiply on another device, whatever lock is held.
        return list(self._devices.values())

    def _holders(self, problem: GemmProblem, signature: Signature) -> list[SharedResults]:
        """Return the results that hold a signature's winner, of devices that were met, its own device's first."""
        own = self._devices.get(problem.device)
        if own is not None:
            own.ensure_loaded()
        holders = [device for device in self._met() if device.results.get(signature) is not None]
        return sorted(holders, key=lambda device: device is not own)

    def _device(self, device: str, backend: Backend | None = None) -> SharedResults:
        """Return the results of a device, made at first use; its file is read when they are first consulted."""
        known = self._devices.get(device)
        if known is not None:
            return known
        with self._state_lock:
            if device not in self._devices:
                backend = backend or self._likely_backend(device)
                path = self._absolute(self._results_name(device))
                facts = self._facts(device, backend)
                made = SharedResults(device, facts, path, self.listeners, journal=self._journal)
                for other in self._met():
                    made.take_over(other)
                self._backends.setdefault(device, backend)
                # A signal handler on this thread may have met it meanwhile, and recorded a winner there.
                if self._devices.setdefault(device, made) is made:
                    self._journal.note_many()
                for other in self._met():
                    other.let_go(self._devices[device])
            return self._devices[device]

    def _is_ready(self, device: str) -> bool:
        """Return whether nothing must be made or read before a product on a device is looked up."""
        known = self._devices.get(device)
        return known is not None and (known.is_loaded or not self._settings.enabled)

    def _facts(self, device: str, backend: Backend) -> tuple[Validator, ...]:
        """Return what the file of a device must match."""
        return check_validators((FORMAT_VALIDATOR, *backend.validators(device)))

    def _results_name(self, device: str) -> str:
        name = self._settings.filename
        from_environment = self._settings.origin("filename") == "environment"
        is_whole = name and not from_environment and name not in self._names_with_ordinal
        return str(name) if is_whole else results_name(name, device)

    def _redirect(self) -> None:
        for device in self._met():
            device.redirect(self._absolute(self._results_name(device.device)))

    def _absolute(self, name: str | os.PathLike[str]) -> str:
        """Return the path that a name means now, however often the process changes its folder later."""
        path = self._directory / name
        try:
            return str(path.absolute())
        except OSError:
            # The working directory is gone; writing says so, as for any folder that is not there.
            return str(Path(os.sep, "the working directory does not exist any more", path))
