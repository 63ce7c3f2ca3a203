"""The results of a context: one file, database and set of validators for each device that it meets."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tensorplay.backends import registry
from tensorplay.backends.base import Backend
from tensorplay.database.csv_text import FORMAT_VALIDATOR
from tensorplay.database.filename import default_results_name, default_untuned_name, insert_ordinal
from tensorplay.database.record import Entry, check_validators
from tensorplay.errors import KernelUnavailableError, TensorPlayError
from tensorplay.gemm import GemmProblem, Signature, parse_kernel_id, parse_signature
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.journal import Journal
from tensorplay.runtime.listeners import WINNER
from tensorplay.runtime.steered_results import SteeredResults
from tensorplay.runtime.switches import Switches
from tensorplay.runtime.untuned_files import UntunedFiles

__all__ = ["Archive", "Recorded"]


class Recorded(NamedTuple):
    """A winner with where it came from: `file`, `measured here` or `override`; pinned, nothing changes it."""

    op: str
    params: str
    kernel: str
    time_ms: float
    device: str
    origin: str
    pinned: bool = False


class Archive(Switches):
    """Where winners are kept. No method raises for what a disk does, but warns; see `DeviceResults`.

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
        self._devices: dict[str, SteeredResults] = {}
        self._journal = Journal()
        self._untuned_files = UntunedFiles()
        self._state_lock = ForkSafeLock()
        # The name that `set_filename` was told to insert ordinals into; names from the environment always are.
        self._name_with_ordinal: str | None = None
        self._write_on_exit = True

    def set_filename(self, name: str, insert_device_ordinal: bool = False) -> None:
        """Send winners to another file; "" goes back to the default name.

        A file named before the first product is read there; one named later is only written, until `read_file`.
        With `insert_device_ordinal` the ordinal takes the place of `%d` in the base name, or stands before its
        last dot. Relative names are relative to the working directory at first use.
        """
        with self._state_lock:
            self._settings.set("filename", name)
            self._name_with_ordinal = name if insert_device_ordinal and name else None
            self._redirect()

    def get_filename(self) -> str:
        """Return the current device's results file, empty until it is set or first used."""
        with self._state_lock:
            device = self._current_device()
            return self._results_name(device) if self._settings.filename or self._devices else ""

    def get_results(self) -> list[tuple[str, str, str, float]]:
        """Return every winner in memory as (op, params, kernel, time in ms), sorted."""
        with self._state_lock:
            held = [device.results.entries() for device in self._devices.values()]
        return sorted({(op, params, kernel, ms) for entries in held for op, params, kernel, ms in entries})

    def recorded(self) -> list[Recorded]:
        """Return every winner in memory with its origin, in no particular order."""
        return list(self.each_recorded())

    def each_recorded(self) -> Iterator[Recorded]:
        """Yield what `recorded` returns, one by one, for whoever needs no list of it."""
        with self._state_lock:
            devices = list(self._devices.values())
        for device in devices:
            for entry in device.results:
                signature = entry.signature
                origin = device.origins.get(signature, "file")
                yield Recorded(*entry, device.device, origin, device.is_pinned(signature))

    def results_revision(self) -> int:
        """Return a number that grows whenever a winner is added, changed, dropped, pinned or unpinned."""
        return self._journal.revision

    def results_files(self) -> list[tuple[str, str]]:
        """Return (device, file that winners go to) for each device that was met."""
        with self._state_lock:
            devices = list(self._devices.values())
        return [(device.device, device.target) for device in devices]

    def validators_of(self, device: str) -> list[tuple[str, str]]:
        """Return the facts about this build and a device that its file must match."""
        return [(name, value) for name, value in self._device(device).validators]

    def get_validators(self) -> list[tuple[str, str]]:
        """Return the facts about this build and the current device that a file must match."""
        return [(name, value) for name, value in self._device(self._current_device()).validators]

    def read_file(self, filename: str | None = None, *, overwrite: bool = False) -> bool:
        """Merge a results file, the current one unless named; return whether it exists and matches this build.

        What is in memory stays, unless `overwrite`. A file of another build changes nothing and is not changed.
        """
        device = self._device(self._current_device())
        read = device.read(self._absolute(filename) if filename else device.path, overwrite=overwrite)
        self._invalidate()
        return read

    def write_file(self, filename: str | None = None) -> bool:
        """Rewrite the results file with every winner, merged with what others wrote; return whether it was written.

        Without a name every device's own file is written. A file of another build is left as it is, and a
        sibling is written.
        """
        if filename:
            return self._device(self._current_device()).write(self._absolute(filename))
        with self._state_lock:
            devices = list(self._devices.values()) or [self._device(self._current_device())]
        written = [device.write() for device in devices]
        return all(written)

    def write_file_on_exit(self, val: bool) -> None:
        """Control whether winners that could not be written are tried once more at exit; on unless turned off.

        Winners are on disk as soon as they are recorded, so that there is nothing else to write then.
        """
        self._write_on_exit = bool(val)

    def forget(self, op: str, params: str) -> bool:
        """Drop a winner from memory and file, so that its problem is measured again; return whether it was there.

        `TensorPlayError` when it is pinned.
        """
        problem = parse_signature(op, params)
        # A file may hold winners of other devices too; they are forgotten where they are kept.
        here = problem.device if problem.device in self._devices else self._current_device()
        device = self._device(here)
        device.ensure_loaded()
        known = device.remove(Signature(op, params))
        self._forgotten(Signature(op, params))
        self._invalidate()
        self.listeners.tell(WINNER, op=op, params=params, action="forgotten")
        return known

    def override(self, op: str, params: str, kernel: str) -> None:
        """Record a kernel of your own choice for a signature, in memory and file.

        Raises
        ------
        SignatureError
            When op and params are no signature.
        KernelIdError
            When the kernel is no kernel id.
        KernelUnavailableError
            When this build cannot run the kernel for that problem.
        TensorPlayError
            When the winner is pinned.
        """
        problem = parse_signature(op, params)
        backend = self._backend_of(problem)
        if parse_kernel_id(kernel) is not None:
            backend.rebuild(problem, kernel)
        device = self._device(problem.device, backend)
        device.ensure_loaded()
        device.record(Entry(op, params, kernel, 0.0), "override")
        self._forgotten(Signature(op, params), kernel)
        self._invalidate()
        self.listeners.tell(WINNER, op=op, params=params, kernel=kernel, action="overridden")

    def close(self) -> None:
        """End the use of a context: write what could not be written, unless told not to, and close the log."""
        if self._write_on_exit:
            with self._state_lock:
                devices = list(self._devices.values())
            for device in devices:
                device.save_pending()
        self._untuned_files.save_pending()
        self._verbose_log.close()

    def get_rotating_buffer_size(self) -> int:
        """Return the pool that operands rotate through, in MiB; by default twice the last private cache, rounded up."""
        set_to = self._settings.rotating_buffer_size
        if set_to is not None:
            return int(set_to)
        return -(-self._default_backend().default_rotating_bytes(self._current_device()) // (1 << 20))

    def backend(self, device: str) -> Backend:
        """Return who runs products on `device`."""
        return self._backends.get(device) or registry.backend_of(device)

    def _invalidate(self) -> None:
        """Forget prepared plans: what they were prepared from has changed."""

    def _forgotten(self, signature: Signature, kernel: str | None = None) -> None:
        """Forget what this process has learned against a signature, or one kernel of it."""

    def _default_backend(self) -> Backend:
        return next(iter(self._backends.values()), None) or registry.default_backend()

    def _current_device(self) -> str:
        return self._default_backend().current_device()

    def _backend_of(self, problem: GemmProblem) -> Backend:
        try:
            backend = self.backend(problem.device)
            # A backend that knows its kind of device need not have this one.
            backend.validators(problem.device)
        except TensorPlayError as error:
            raise KernelUnavailableError(f"device {problem.device} is not in this process: {error}") from error
        return backend

    def _device(self, device: str, backend: Backend | None = None) -> SteeredResults:
        """Return the results of a device, made at first use; its file is read when they are first consulted."""
        known = self._devices.get(device)
        if known is not None:
            return known
        with self._state_lock:
            if device not in self._devices:
                backend = backend or self._backends.get(device) or self._default_backend()
                made = self._results_of(device, backend)
                self._backends.setdefault(device, backend)
                self._devices[device] = made
                self._journal.note_many()
            return self._devices[device]

    def _results_of(self, device: str, backend: Backend) -> SteeredResults:
        """Return results of a device that nobody else sees, nothing read yet."""
        validators = check_validators((FORMAT_VALIDATOR, *backend.validators(device)))
        path = self._absolute(self._results_name(device))
        return SteeredResults(device, validators, path, self.listeners, journal=self._journal)

    def _results_name(self, device: str) -> str:
        name = self._settings.filename
        if not name:
            return default_results_name(device)
        from_environment = self._settings.origin("filename") == "environment"
        return insert_ordinal(name, device) if from_environment or name == self._name_with_ordinal else name

    def _redirect(self) -> None:
        for device in self._devices.values():
            device.redirect(self._absolute(self._results_name(device.device)))

    def _absolute(self, name: str | os.PathLike[str]) -> str:
        """Return the path that a name means now, however often the process changes its folder later."""
        path = self._directory / name
        try:
            return str(path.absolute())
        except OSError:
            # The working directory is gone; writing says so, as for any folder that is not there.
            return str(Path(os.sep, "the working directory does not exist any more", path))

    def _log_untuned(self, signature: Signature, device: str) -> None:
        """Write a signature to the untuned file, once."""
        name = self._settings.untuned_filename
        path = self._absolute(insert_ordinal(name, device) if name else default_untuned_name(device))
        self._untuned_files.record(path, signature)
