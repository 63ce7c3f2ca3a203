"""What the service asks of a context: of one that multiplies, or of recorded files."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tensorplay.gemm import GemmProblem
from tensorplay.runtime.archive import Recorded
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.rejections import Rejection
from tensorplay.runtime.settings import Origin, SettingState

__all__ = ["WatchedContext"]


class WatchedContext(Protocol):
    """A context as the service sees it; the methods mean what those of `TuningContext` mean."""

    @property
    def listeners(self) -> Listeners:
        """Return who is told of what happens."""

    def recorded(self) -> list[Recorded]:
        """Return every winner."""

    def results_revision(self) -> int:
        """Return a number that grows whenever a winner is added, changed or dropped."""

    def results_files(self) -> Sequence[tuple[str, str]]:
        """Return (device, file)."""

    def validators_of(self, device: str) -> list[tuple[str, str]]:
        """Return the facts that a device's file must match."""

    def settings(self) -> list[SettingState]:
        """Return every setting."""

    def change_setting(self, name: str, value: object, *, origin: Origin = "api") -> None:
        """Change a setting."""

    def explain(self, op: str, params: str) -> Mapping[str, Any]:
        """Return why a signature runs what it runs."""

    def stats(self) -> dict[str, int]:
        """Return how often each thing happened."""

    def calls_of(self, op: str, params: str) -> dict[str, int]:
        """Return the calls of a signature, by what ran."""

    def get_rejections(self) -> list[Rejection]:
        """Return the recorded winners that did not run."""

    def get_untuned(self) -> list[tuple[str, str]]:
        """Return the signatures that ran without a winner."""

    def write_file(self) -> bool:
        """Rewrite the results files."""

    def forget(self, op: str, params: str) -> bool:
        """Drop a winner."""

    def override(self, op: str, params: str, kernel: str) -> None:
        """Record a kernel of the caller's choice."""

    def tune(self, problem: GemmProblem) -> object:
        """Measure a problem now."""
