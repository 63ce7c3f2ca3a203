"""What the client that blocks does to winners, lists and files, and how it undoes changes of settings."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import BinaryIO, TypeVar, Unpack

import httpx

from tensorplay.service.client import calls, change_calls
from tensorplay.service.client.call import Call, error_of, unreachable
from tensorplay.service.client.calls import Filters
from tensorplay.service.client.change_calls import ExportKind
from tensorplay.service.file_schemas import LoadReport, SaveReport
from tensorplay.service.schemas import JobModel, RejectionModel, ResultModel, SettingModel, UntunedModel

T = TypeVar("T")

__all__ = ["BlockingChanges"]


class BlockingChanges(ABC):
    """The part of `Client` that steers."""

    _url: str
    _http: httpx.Client

    @abstractmethod
    def _do(self, call: Call[T]) -> T:
        """Make a call."""

    def reset(self, name: str) -> SettingModel:
        """Undo the changes of one setting: it is again what the environment said at the start, else its default."""
        return self._do(change_calls.reset(name))

    def reresolve(self) -> int:
        """Let every product be decided anew at its next call; return how many were ready to run."""
        return self._do(calls.reresolve())

    def pin(self, result_id: str, *, if_match: str = "*") -> ResultModel:
        """Keep a winner as it is until it is unpinned: neither measuring nor a file replaces it."""
        return self._do(change_calls.pin(result_id, if_match))

    def unpin(self, result_id: str, *, if_match: str = "*") -> None:
        """Let a winner be changed again."""
        return self._do(change_calls.unpin(result_id, if_match))

    def override(self, result_id: str, kernel: str, *, if_match: str = "*") -> ResultModel:
        """Record a kernel of your own choice for a signature; with an `etag`, only if nothing changed since."""
        return self._do(calls.override(result_id, kernel, if_match))

    def forget(self, result_id: str, *, if_match: str = "*") -> None:
        """Drop a winner in memory and file; with an `etag`, only if nothing changed since."""
        self._do(calls.forget(result_id, if_match))

    def withdraw_override(self, result_id: str, *, if_match: str = "*") -> None:
        """Go back to the winner before an override; where none is known, forget it."""
        return self._do(change_calls.withdraw(result_id, if_match))

    def forget_all(self, *, if_match: str = "*") -> None:
        """Drop every winner in memory and file; refused while any is pinned."""
        return self._do(change_calls.forget_all(if_match))

    def rejection(self, rejection_id: str) -> RejectionModel:
        """Return one rejection."""
        return self._do(change_calls.rejection(rejection_id))

    def retune(self, rejection_id: str) -> JobModel:
        """Start to measure a rejected signature anew."""
        return self._do(change_calls.retune(rejection_id))

    def clear_rejections(self) -> None:
        """Empty the list of rejections."""
        return self._do(change_calls.clear_rejections())

    def untuned(self) -> list[UntunedModel]:
        """Return the signatures that ran without a winner, the most called first."""
        found: list[UntunedModel] = []
        cursor: str | None = None
        while True:
            page = self._do(change_calls.untuned_page(cursor))
            found += page.items
            cursor = page.next
            if cursor is None:
                return found

    def forget_untuned(self, untuned_id: str) -> None:
        """Take a signature off the list of untuned ones."""
        return self._do(change_calls.forget_untuned(untuned_id))

    def forget_all_untuned(self) -> None:
        """Empty the list of untuned signatures."""
        return self._do(change_calls.forget_all_untuned())

    def read_file(self, name: str) -> bytes:
        """Return what a file holds that `files` lists."""
        return self._do(change_calls.read_file(name))

    def load_file(self, name: str, *, overwrite: bool = False, device: str | None = None) -> LoadReport:
        """Merge a results file into memory; with `overwrite` its winners replace those that are there."""
        return self._do(change_calls.load_file(name, device, overwrite=overwrite))

    def save_file(
        self, name: str, *, if_match: str | None = None, device: str | None = None, key: str | None = None
    ) -> SaveReport:
        """Write the winners to a new file, or with the `etag` of an old one over that, merged with what it holds."""
        return self._do(change_calls.save_file(name, device, if_match, key))

    def tune(
        self,
        signatures: Iterable[tuple[str, str]] | None = None,
        *,
        file: str | None = None,
        budget: Mapping[str, float] | None = None,
        key: str | None = None,
        again: bool = False,
    ) -> JobModel:
        """Start to measure signatures (op, params), or those of a file, or all untuned ones.

        What has a winner that runs is left as it is, and counted in `skipped`.

        Parameters
        ----------
        signatures : iterable of (str, str), optional
            What to measure.
        file : str, optional
            The name of one that `files` lists, whose signatures are measured instead.
        budget : mapping, optional
            `total_seconds`, `max_tuning_duration_ms` and `max_tuning_samples` of the job.
        key : str, optional
            One key never starts two jobs.
        again : bool
            Whether what has a winner is measured too; what is decided now takes its place.
        """
        return self._do(calls.start_job(signatures, file, budget, key, again=again))

    def export(self, file: BinaryIO, kind: ExportKind = "results.csv", **filters: Unpack[Filters]) -> int:
        """Write winners, rejections or untuned signatures to a file as they come; return how many bytes.

        The filters are those of `results`, and count for winners alone.
        """
        path, query = change_calls.export(kind, filters)
        written = 0
        try:
            with self._http.stream("GET", path, params=dict(query)) as response:
                if not response.is_success:
                    response.read()
                    raise error_of(response)
                for part in response.iter_bytes():
                    written += file.write(part)
        except httpx.HTTPError as error:
            raise unreachable(self._url, path, error) from error
        return written
