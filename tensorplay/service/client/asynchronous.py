"""The client that is awaited."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Self, TypeVar, Unpack

import httpx

from tensorplay.service.client import calls
from tensorplay.service.client.asynchronous_changes import AsyncChanges
from tensorplay.service.client.call import SILENCE_S, Call, RetryRule, answer_of, connection_of, error_of, unreachable
from tensorplay.service.client.calls import LONGEST_POLL_S, OVER, Filters, ResultsPage
from tensorplay.service.client.error import ServiceError
from tensorplay.service.client.event import Event, EventReader
from tensorplay.service.client.ranks import AsyncRankMethods
from tensorplay.service.explanation_schemas import ExplanationModel
from tensorplay.service.file_schemas import FileModel
from tensorplay.service.runtime_schemas import DeviceModel, RuntimeModel
from tensorplay.service.schemas import (
    InstanceModel,
    JobModel,
    LogEntry,
    RejectionModel,
    ResultDetail,
    ResultModel,
    SettingModel,
)

T = TypeVar("T")

__all__ = ["AsyncClient"]


class AsyncClient(AsyncChanges, AsyncRankMethods):
    """A service, as a coroutine steers it.

    For one event loop. `async with` closes it.

    Parameters
    ----------
    url : str
        Where the service answers, as it was printed: `http://127.0.0.1:8787/`, below a proxy's prefix, or `unix:/...`.
    token : str, optional
        What changes must show, and reading too where the service can be reached by others.
    timeout : float
        Seconds that a call may take at most, besides what the service waits on purpose.
    retries : int
        How often a call is sent again; only what does no more when it is done twice, or was refused as one too many.
    transport : httpx.AsyncBaseTransport, optional
        How it is reached, if by a Unix socket, a proxy, other certificates; proxies of the environment are not used.

    Raises
    ------
    ValueError
        When the url is no address of a service.
    ServiceError
        From every method, when the service cannot be reached or refuses.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 2,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout = timeout
        self._retry = RetryRule(retries)
        self._url = url
        self._http = httpx.AsyncClient(**connection_of(url, token, timeout, transport, httpx.AsyncHTTPTransport))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def is_alive(self) -> bool:
        """Return whether the service answers at all."""
        return await self._probe("livez")

    async def is_ready(self) -> bool:
        """Return whether the service answers and does not stop."""
        return await self._probe("readyz")

    async def instance(self) -> InstanceModel:
        """Return which process answers."""
        return await self._do(calls.instance())

    async def stats(self) -> dict[str, int]:
        """Return how often each thing happened in that process."""
        return await self._do(calls.stats())

    async def settings(self) -> list[SettingModel]:
        """Return every setting with where its value came from."""
        return await self._do(calls.settings())

    async def set(self, name: str, value: object) -> SettingModel:
        """Change one setting, None for its default, and return it as it is then."""
        return await self._do(calls.set_setting(name, value))

    async def switches(self) -> dict[str, SettingModel]:
        """Return the switches by name."""
        return await self._do(calls.some_settings("switches"))

    async def set_switch(self, name: str, value: bool) -> SettingModel:
        """Change one switch at once, and return it as it is then."""
        return await self._do(calls.set_switch(name, value))

    async def set_switches(
        self, *, enabled: bool | None = None, tuning: bool | None = None, record_untuned: bool | None = None
    ) -> dict[str, SettingModel]:
        """Change the switches that are given, at once; return all of them."""
        values = {"enabled": enabled, "tuning": tuning, "record_untuned": record_untuned}
        return await self._do(calls.change_some("switches", values))

    async def budgets(self) -> dict[str, SettingModel]:
        """Return the ceilings of measuring by name."""
        return await self._do(calls.some_settings("budgets"))

    async def set_budgets(
        self,
        *,
        max_tuning_duration_ms: int | None = None,
        max_tuning_samples: int | None = None,
        total_tuning_seconds: float | None = None,
        workspace_mib: int | None = None,
    ) -> dict[str, SettingModel]:
        """Change the budgets that are given, zero for no limit; return all of them."""
        values = {
            "max_tuning_duration_ms": max_tuning_duration_ms,
            "max_tuning_samples": max_tuning_samples,
            "total_tuning_seconds": total_tuning_seconds,
            "workspace_mib": workspace_mib,
        }
        return await self._do(calls.change_some("budgets", values))

    async def results_page(
        self, *, sort: str = "op", limit: int = 100, cursor: str | None = None, **filters: Unpack[Filters]
    ) -> ResultsPage:
        """Return some winners, and where the list goes on; `-` before the key of `sort` turns it round."""
        return await self._do(calls.results_page(filters, sort, limit, cursor))

    async def results(
        self, *, sort: str = "op", page: int = 500, limit: int | None = None, **filters: Unpack[Filters]
    ) -> AsyncIterator[ResultModel]:
        """Yield every winner that fulfils the filters, or `limit` of them, asking for `page` at a time."""
        cursor: str | None = None
        for size in calls.page_sizes(page, limit):
            found = await self._do(calls.results_page(filters, sort, size, cursor))
            for result in found.items:
                yield result
            cursor = found.next
            if cursor is None:
                return

    async def result(self, result_id: str) -> ResultDetail:
        """Return one winner with its candidates, how it was chosen, and what it was before."""
        return await self._do(calls.result(result_id))

    async def explain(self, op: str, params: str) -> ExplanationModel:
        """Return why a signature runs what it runs: its winner, all candidates, their times, and the margin."""
        return await self._do(calls.explain(op, params))

    async def rejections(self) -> list[RejectionModel]:
        """Return the recorded winners that did not run, each with its reason."""
        return await self._do(calls.rejections())

    async def files(self) -> list[FileModel]:
        """Return the results files by name."""
        return await self._do(calls.files())

    async def save_files(self) -> bool:
        """Let every results file be rewritten; return whether all were."""
        return await self._do(calls.save_files())

    async def devices(self) -> list[DeviceModel]:
        """Return the devices that were met, each with its validators, files and counts."""
        return await self._do(calls.devices())

    async def runtime(self) -> RuntimeModel:
        """Return versions, what is ready to run, what is spent, and the revision of every list."""
        return await self._do(calls.runtime())

    async def validators(self) -> dict[str, dict[str, str]]:
        """Return the facts that a results file must match, by device."""
        return await self._do(calls.validators())

    async def log(self, since: int = 0) -> list[LogEntry]:
        """Return the last events of the runtime behind a number, oldest first."""
        return await self._do(calls.log(since))

    async def jobs(self) -> list[JobModel]:
        """Return the jobs, the newest first."""
        return await self._do(calls.jobs())

    async def job(self, job_id: str) -> JobModel:
        """Return one job as it stands."""
        return await self._do(calls.job(job_id))

    async def wait(self, job_id: str, timeout_s: float = 3600.0) -> JobModel:
        """Return a job once it is over; a `ServiceError` with the code `timeout` when it is not by then."""
        end = time.monotonic() + timeout_s
        while True:
            left = max(0.0, end - time.monotonic())
            found = await self._do(calls.job(job_id, min(left, LONGEST_POLL_S)))
            if found.state in OVER:
                return found
            if left == 0.0:
                raise ServiceError(
                    0, "timeout", f"the job has done {found.done} of {found.total} after {timeout_s:g} s"
                )

    async def cancel(self, job_id: str) -> JobModel:
        """Let a job end after the signature that it measures."""
        return await self._do(calls.cancel_job(job_id))

    async def forget_job(self, job_id: str) -> None:
        """Drop a job that is over."""
        await self._do(calls.forget_job(job_id))

    async def events(self, kinds: Iterable[str] | None = None, *, last_id: str | None = None) -> AsyncIterator[Event]:
        """Yield what happens, as it happens, until the service stops; connections that break are made anew.

        Parameters
        ----------
        kinds : iterable of str, optional
            `settings`, `results`, `rejections`, `untuned`, `files`, `jobs`, `log`; all unless given.
        last_id : str, optional
            Of the last event that was seen before: what came after it is told first.
        """
        wanted = None if kinds is None else tuple(kinds)
        failures = 0
        while True:
            try:
                async with self._stream(wanted, last_id) as response:
                    if not response.is_success:
                        await response.aread()
                        raise error_of(response)
                    reader = EventReader()
                    async for line in response.aiter_lines():
                        event = reader.feed(line)
                        if event is None:
                            continue
                        failures, last_id = 0, event.id or last_id
                        yield event
                        if event.kind == "bye":
                            return
            except httpx.HTTPError as error:
                if failures >= self._retry.most:
                    raise unreachable(self._url, "events", error) from error
            # An end without a goodbye is a connection that broke, too.
            failures += 1
            if failures > self._retry.most:
                raise ServiceError(0, "unreachable", "the stream of events ended again and again")
            await asyncio.sleep(0.1 * 2**failures)

    def _stream(self, kinds: Iterable[str] | None, last_id: str | None) -> AbstractAsyncContextManager[httpx.Response]:
        return self._http.stream(
            "GET",
            "api/v1/events",
            params=calls.events_query(kinds),
            headers=calls.events_headers(last_id),
            timeout=httpx.Timeout(self._timeout, read=SILENCE_S),
        )

    async def _probe(self, name: str) -> bool:
        try:
            await self._do(calls.probe(name))
        except ServiceError:
            return False
        return True

    async def _do(self, call: Call[T]) -> T:
        attempt = 0
        while True:
            try:
                response = await self._http.request(call.method, call.path, **call.options(self._timeout))
            except httpx.HTTPError as error:
                pause = self._retry.pause(call, attempt, None)
                if pause is None:
                    raise unreachable(self._url, call.path, error) from error
            else:
                pause = self._retry.pause(call, attempt, response)
                if pause is None:
                    return answer_of(call, response)
            await asyncio.sleep(pause)
            attempt += 1
