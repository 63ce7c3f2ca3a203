"""The results of a context: one file, database and set of validators for each device that it meets."""

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tensorplay.backends.base import Backend
from tensorplay.database.filename import default_untuned_name, insert_ordinal
from tensorplay.database.record import Entry
from tensorplay.database.validators import compare
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import Signature, parse_kernel_id, parse_signature
from tensorplay.gemm.problem import CPU
from tensorplay.runtime.devices import Devices
from tensorplay.runtime.listeners import WINNER
from tensorplay.runtime.shared_results import FileHead, SharedResults
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


class Archive(Devices):
    """Where winners are kept. No method raises for what a disk does, but warns; see `DeviceResults`.

    Parameters
    ----------
    environ, directory, backends
        As `Devices` takes them.
    """

    def __init__(
        self, environ: Mapping[str, str], directory: str | os.PathLike[str], backends: Mapping[str, Backend]
    ) -> None:
        super().__init__(environ, directory, backends)
        self._untuned_files = UntunedFiles()
        self._write_on_exit = True

    def get_results(self) -> list[tuple[str, str, str, float]]:
        """Return every winner in memory as (op, params, kernel, time in ms), sorted."""
        held = [device.results.entries() for device in self._met()]
        return sorted({(op, params, kernel, ms) for entries in held for op, params, kernel, ms in entries})

    def recorded(self) -> list[Recorded]:
        """Return every winner in memory with its origin, in no particular order."""
        return list(self.each_recorded())

    def each_recorded(self) -> Iterator[Recorded]:
        """Yield what `recorded` returns, one by one, for whoever needs no list of it."""
        for device in self._met():
            for entry in device.results:
                signature = entry.signature
                origin = device.origins.get(signature, "file")
                yield Recorded(*entry, device.device, origin, device.is_pinned(signature))

    def results_revision(self) -> int:
        """Return a number that grows whenever a winner is added, changed, dropped, pinned or unpinned."""
        return self._journal.revision

    def results_files(self) -> list[tuple[str, str]]:
        """Return (device, file that winners go to) for each device that was met."""
        return [(device.device, device.target) for device in self._met()]

    def validators_of(self, device: str) -> list[tuple[str, str]]:
        """Return the facts about this build and a device that its file must match."""
        return [(name, value) for name, value in self._device(device).validators]

    def get_validators(self) -> list[tuple[str, str]]:
        """Return the facts about this build and the current device that a file must match."""
        return [(name, value) for name, value in self._device(self._current_device()).validators]

    def read_file(self, filename: str | None = None, *, overwrite: bool = False) -> bool:
        """Merge a results file, the current device's unless named; return whether it exists and matches this build.

        What is in memory stays, unless `overwrite`. A file of another build changes nothing and is not changed. Each
        winner is the device's that its params name, where the file matches it; all others are kept for the first
        device that the file matches, the current one before others. So are, until their first product, those of GPUs
        that were not used yet; only where a GPU that was used, or the host, matches the file, it is read at all.
        """
        current = self._device(self._current_device())
        path = self._absolute(filename) if filename else current.path
        matching = self._matched_by(FileHead.read(path), current)
        reader, others = (matching[0], matching[1:]) if matching else (current, [])
        read = reader.read_with(others, path, overwrite=overwrite)
        for device in self._met():
            if device not in {reader, *matching}:
                device.read_sibling(path, overwrite=overwrite)
        self._invalidate()
        return read

    def write_file(self, filename: str | None = None) -> bool:
        """Rewrite the results file with every winner, merged with what others wrote; return whether it was written.

        Without a name every device's own file is written. A file of another build is left as it is, and a sibling is
        written: also where devices that match no common file are to be written to one, the current one first.
        """
        if not filename:
            devices = self._met() or [self._device(self._current_device())]
            written = [device.write_beside(devices) for device in devices]
            return all(written)
        current = self._device(self._current_device())
        holding = [device for device in self._met() if len(device.results)] or [current]
        path = self._absolute(filename)
        holding.sort(key=lambda device: device is not current)
        written = [device.write_beside(holding, path) for device in holding]
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
        problem, signature = parse_signature(op, params), Signature(op, params)
        try:
            own = self._device(problem.device, self._backend_of(problem))
        except KernelUnavailableError:
            # Its winners may be in the current device's file.
            own = self._device(self._current_device())
        own.ensure_loaded()
        # Other devices may have read it from a file that was shared.
        keepers = dict.fromkeys((own, *self._holders(problem, signature)))
        was_known = [device.remove(signature) for device in keepers]
        self._forgotten(signature)
        self._invalidate()
        self.listeners.tell(WINNER, op=op, params=params, action="forgotten")
        return any(was_known)

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
            for device in self._met():
                device.save_pending()
        self._untuned_files.save_pending()
        self._verbose_log.close()

    def get_rotating_buffer_size(self) -> int:
        """Return the pool that operands rotate through, in MiB; by default twice the last private cache, rounded up."""
        set_to = self._settings.rotating_buffer_size
        if set_to is not None:
            return int(set_to)
        return -(-self._default_backend().default_rotating_bytes(self._current_device()) // (1 << 20))

    def _invalidate(self) -> None:
        """Forget prepared plans: what they were prepared from has changed."""

    def _forgotten(self, signature: Signature, kernel: str | None = None) -> None:
        """Forget what this process has learned against a signature, or one kernel of it."""

    def _matched_by(self, head: FileHead, current: SharedResults) -> list[SharedResults]:
        """Return the devices that match a file: who keeps what is nobody's first, then those that it names."""
        matching = [device for device in self._met() if device.is_of(head)]
        if current not in matching and CPU in head.devices and CPU not in self._devices:
            matching += self._host_of(head)
        matching.sort(key=lambda device: (device is not current, device.device not in head.devices))
        return matching[:1] + [device for device in matching[1:] if device.device in head.devices]

    def _host_of(self, head: FileHead) -> list[SharedResults]:
        """Return the results of the host if it matches a file; else it is not met now.

        No GPU is looked for so: asking one what its files must match takes up memory of it, in each process of many.
        """
        backend = self._backend_on(CPU)
        return [] if compare(self._facts(CPU, backend), head.validators) else [self._device(CPU, backend)]

    def _log_untuned(self, signature: Signature, device: str) -> None:
        """Write a signature to the untuned file, once."""
        name = self._settings.untuned_filename
        path = self._absolute(insert_ordinal(name, device) if name else default_untuned_name(device))
        self._untuned_files.record(path, signature)
