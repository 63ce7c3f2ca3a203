"""What the service asks of a context: of one that multiplies, or of recorded files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tensorplay.database.written_line import WrittenLine
from tensorplay.gemm import GemmProblem, Signature
from tensorplay.measure.report import Verdict
from tensorplay.runtime.archive import Recorded
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.merge_report import FileFault, MergeReport
from tensorplay.runtime.rejections import Meetings, Rejection
from tensorplay.runtime.settings import Origin, SettingState
from tensorplay.runtime.winner_history import PastWinner

__all__ = ["WatchedContext"]


class WatchedContext(Protocol):
    """A context as the service sees it; the methods mean what those of `TuningContext` mean."""

    @property
    def plans(self) -> Mapping[Any, Any]:
        """Return what is ready to run, by the layout of its operands."""

    @property
    def listeners(self) -> Listeners:
        """Return who is told of what happens."""

    def recorded(self) -> list[Recorded]:
        """Return every winner."""

    def each_recorded(self) -> Iterator[Recorded]:
        """Yield every winner."""

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

    def spent_tuning_seconds(self) -> float:
        """Return the seconds that were spent on measuring."""

    def reresolve(self) -> None:
        """Let every product be decided anew."""

    def stats(self) -> dict[str, int]:
        """Return how often each thing happened."""

    def calls_of(self, op: str, params: str) -> dict[str, int]:
        """Return the calls of a signature, by what ran."""

    def calls_by_signature(self) -> Mapping[Signature, int]:
        """Return how often each signature ran without a recorded winner."""

    def recorded_of(self, signatures: Iterable[Signature]) -> list[Recorded]:
        """Return the winners of some signatures."""

    def changed_since(self, revision: int) -> frozenset[Signature] | None:
        """Return the signatures whose winners changed behind a revision; None when that is not known."""

    def first_choices(self, signatures: Iterable[Signature]) -> Mapping[Signature, float]:
        """Return the first choices' times, in milliseconds, where they are known."""

    def past_winners(self, op: str, params: str) -> list[PastWinner]:
        """Return the winners that a signature had."""

    def written_at(self, op: str, params: str) -> WrittenLine | None:
        """Return the file and line that the winner of a signature stands in now."""

    def file_faults(self) -> list[FileFault]:
        """Return what was wrong with results files that were read."""

    def get_rejections(self) -> list[Rejection]:
        """Return the recorded winners that did not run."""

    def rejection_meetings(self, op: str, params: str, kernel: str) -> Meetings | None:
        """Return how often a recorded winner was met and did not run, and when."""

    def get_untuned(self) -> list[tuple[str, str]]:
        """Return the signatures that ran without a winner."""

    def write_file(self) -> bool:
        """Rewrite the results files."""

    def forget(self, op: str, params: str) -> bool:
        """Drop a winner."""

    def override(self, op: str, params: str, kernel: str) -> None:
        """Record a kernel of the caller's choice."""

    def withdraw_override(self, op: str, params: str) -> bool:
        """Go back to the winner before an override."""

    def pin_winner(self, op: str, params: str) -> bool:
        """Keep a winner as it is."""

    def unpin_winner(self, op: str, params: str) -> bool:
        """Let a winner be changed again."""

    def forget_all(self) -> int:
        """Drop every winner."""

    def forget_untuned(self, op: str, params: str) -> bool:
        """Take a signature off the list of untuned ones."""

    def forget_all_untuned(self) -> int:
        """Empty the list of untuned signatures."""

    def clear_rejections(self) -> int:
        """Empty the list of rejections."""

    def load_results(self, device: str, path: str, data: bytes, *, overwrite: bool = False) -> MergeReport:
        """Merge a results file, given as its bytes."""

    def save_results(self, device: str, path: str) -> None:
        """Rewrite a results file."""

    def measure_beside(self, problem: GemmProblem, *, again: bool = False) -> bool | Verdict:
        """Measure a problem now."""

    def configure(self, **settings: object) -> AbstractContextManager[None]:
        """Return a context manager that sets what is named, and restores it."""
