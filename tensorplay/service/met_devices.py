"""The devices that a context met, asked for beside the loop: whoever writes their files holds their locks meanwhile."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tensorplay.errors import TensorPlayError
from tensorplay.gemm import Signature
from tensorplay.runtime.merge_report import FileFault
from tensorplay.service.watched import WatchedContext
from tensorplay.service.worker import Worker

__all__ = ["MetDevice", "MetDevices", "validators_of"]


class MetDevice(NamedTuple):
    """One device, with a file that its winners go to; over recorded files it is there once for each of them.

    Attributes
    ----------
    validators : sequence of (str, str) or None
        The facts that its file must match; None where nothing here runs it.
    """

    device: str
    path: str
    validators: Sequence[tuple[str, str]] | None


class MetDevices:
    """The devices of one context.

    Another process may hold the lock of a results file, and a product of this one wait for it, with the lock of its
    device. So nothing here is asked for on the loop.

    Parameters
    ----------
    context : WatchedContext
        Whose devices they are.
    worker : Worker
        Whose thread waits.
    """

    def __init__(self, context: WatchedContext, worker: Worker) -> None:
        self._context = context
        self._worker = worker

    async def listed(self) -> list[MetDevice]:
        """Return the devices that were met, without touching one."""
        return await self._worker.ask(self.now)

    async def faults(self) -> list[FileFault]:
        """Return what was wrong with results files that were read."""
        return await self._worker.ask(self._context.file_faults)

    async def first_choices(self, signatures: Iterable[Signature]) -> Mapping[Signature, float]:
        """Return the first choices' times of winners, in milliseconds, where they are known: files may tell them."""
        return await self._worker.ask(partial(self._context.first_choices, signatures))

    def now(self) -> list[MetDevice]:
        """Return what `listed` returns, on the caller's thread."""
        return [MetDevice(device, path, self._validators_of(device)) for device, path in self._context.results_files()]

    def _validators_of(self, device: str) -> Sequence[tuple[str, str]] | None:
        try:
            return self._context.validators_of(device)
        except TensorPlayError:
            return None


def validators_of(devices: Iterable[MetDevice]) -> dict[str, Sequence[tuple[str, str]]]:
    """Return the validators of each device that has some."""
    return {each.device: each.validators for each in devices if each.validators is not None}
