"""The calls that both clients make, by the names of their methods."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple, TypedDict
from urllib.parse import quote

import httpx

from tensorplay.service.client.call import Call, reader_of
from tensorplay.service.explanation_schemas import ExplanationModel
from tensorplay.service.file_schemas import FileModel
from tensorplay.service.runtime_schemas import DeviceModel, RuntimeModel
from tensorplay.service.schemas import (
    InstanceModel,
    JobModel,
    Listed,
    LogEntry,
    RejectionModel,
    ResultDetail,
    ResultModel,
    SettingModel,
)

__all__ = ["LONGEST_POLL_S", "OVER", "Filters", "ResultsPage"]

LONGEST_POLL_S = 20.0
"""How long a service is asked to wait for the end of a job at most."""

OVER = frozenset({"succeeded", "failed", "cancelled"})
"""The states of a job that do not change any more."""

_API = "api/v1/"
_settings_by_name = reader_of(dict[str, SettingModel])
_setting = reader_of(SettingModel)
_settings = reader_of(list[SettingModel], "items")
_job = reader_of(JobModel)
_jobs = reader_of(list[JobModel], "items")
_page = reader_of(Listed[ResultModel])
_detail = reader_of(ResultDetail)
_result = reader_of(ResultModel)
_explanation = reader_of(ExplanationModel)
_rejections = reader_of(list[RejectionModel], "items")
_files = reader_of(list[FileModel], "items")
_log = reader_of(list[LogEntry], "items")
_stats = reader_of(dict[str, int])
_validators = reader_of(dict[str, dict[str, str]])
_written = reader_of(bool, "written")
_instance = reader_of(InstanceModel)
_devices = reader_of(list[DeviceModel], "items")
_runtime = reader_of(RuntimeModel)
_plans = reader_of(int, "plans")


class Filters(TypedDict, total=False):
    """Which winners are wanted; `q` is part of op, params or kernel, sizes are of (m, k) @ (k, n)."""

    op: str
    dtype: str
    transposed: bool
    bias: bool
    device: str
    kernel: str
    origin: str
    m_min: int
    m_max: int
    n_min: int
    n_max: int
    k_min: int
    k_max: int
    pinned: bool
    q: str


class ResultsPage(NamedTuple):
    """One page of winners.

    Attributes
    ----------
    items : list of ResultModel
        In the order that was asked for.
    next : str or None
        Cursor of the next page, None at the end.
    total : int
        How many winners fulfil the filter.
    etag : str
        Of the list as it was: `override` and `forget` take it as `if_match`.
    """

    items: list[ResultModel]
    next: str | None
    total: int
    etag: str


def settings() -> Call[list[SettingModel]]:
    return Call(method="GET", path=f"{_API}settings", read=_settings)


def set_setting(name: str, value: object) -> Call[SettingModel]:
    return Call(method="PUT", path=f"{_API}settings/{quote(name, safe='')}", read=_setting, body={"value": value})


def set_switch(name: str, value: bool) -> Call[SettingModel]:
    return Call(method="PUT", path=f"{_API}switches/{quote(name, safe='')}", read=_setting, body={"value": value})


def some_settings(group: str) -> Call[dict[str, SettingModel]]:
    return Call(method="GET", path=f"{_API}{group}", read=_settings_by_name)


def change_some(group: str, values: Mapping[str, object]) -> Call[dict[str, SettingModel]]:
    given = {name: value for name, value in values.items() if value is not None}
    return Call(method="PATCH", path=f"{_API}{group}", read=_settings_by_name, body=given)


def page_sizes(page: int, limit: int | None) -> Iterator[int]:
    """Yield how many winners to ask for at a time, until there are `limit`; for ever for None."""
    if limit is None:
        yield from repeat(page)
    elif limit < 0:
        raise ValueError(f"limit is {limit}; allowed: None for all, or how many winners at most")
    else:
        yield from (min(page, limit - begin) for begin in range(0, limit, page))


def results_page(filters: Filters, sort: str, limit: int, cursor: str | None) -> Call[ResultsPage]:
    query = {name: text_of(value) for name, value in filters.items() if value is not None}
    if "cursor" in query:
        raise TypeError("results() goes through all pages by itself; results_page() takes a cursor")
    query |= {"sort": sort, "limit": str(limit)} | ({"cursor": cursor} if cursor else {})
    return Call(method="GET", path=f"{_API}results", read=_read_page, query=query)


def result(result_id: str) -> Call[ResultDetail]:
    return Call(method="GET", path=_of_result(result_id), read=_detail)


def explain(op: str, params: str) -> Call[ExplanationModel]:
    return Call(method="GET", path=f"{_API}explain", read=_explanation, query={"op": op, "params": params})


def override(result_id: str, kernel: str, if_match: str) -> Call[ResultModel]:
    # Not repeatable, nor is `forget`: what was done already would be refused as changed meanwhile.
    return Call(
        method="PUT",
        path=f"{_of_result(result_id)}/override",
        read=_result,
        body={"kernel": kernel},
        headers={"If-Match": if_match},
        is_repeatable=False,
    )


def forget(result_id: str, if_match: str) -> Call[None]:
    headers = {"If-Match": if_match}
    return Call(method="DELETE", path=_of_result(result_id), read=_nothing, headers=headers, is_repeatable=False)


def rejections() -> Call[list[RejectionModel]]:
    return Call(method="GET", path=f"{_API}rejections", read=_rejections)


def files() -> Call[list[FileModel]]:
    return Call(method="GET", path=f"{_API}files", read=_files)


def save_files() -> Call[bool]:
    return Call(method="POST", path=f"{_API}files/save", read=_written)


def validators() -> Call[dict[str, dict[str, str]]]:
    return Call(method="GET", path=f"{_API}validators", read=_validators)


def stats() -> Call[dict[str, int]]:
    return Call(method="GET", path=f"{_API}stats", read=_stats)


def log(since: int) -> Call[list[LogEntry]]:
    return Call(method="GET", path=f"{_API}log", read=_log, query={"since": str(since)})


def devices() -> Call[list[DeviceModel]]:
    return Call(method="GET", path=f"{_API}devices", read=_devices)


def runtime() -> Call[RuntimeModel]:
    return Call(method="GET", path=f"{_API}runtime", read=_runtime)


def reresolve() -> Call[int]:
    return Call(method="POST", path=f"{_API}actions/reresolve", read=_plans)


def instance() -> Call[InstanceModel]:
    return Call(method="GET", path="api/v1", read=_instance)


def start_job(
    signatures: Iterable[tuple[str, str]] | None,
    file: str | None,
    budget: Mapping[str, float] | None,
    key: str | None,
    *,
    again: bool,
) -> Call[JobModel]:
    source: dict[str, Any] = {} if file is None else {"file": file}
    if signatures is not None:
        source["signatures"] = [{"op": op, "params": params} for op, params in signatures]
    return Call(
        method="POST",
        path=f"{_API}jobs",
        read=_job,
        body={
            "kind": "retune" if again else "tune",
            "source": source or {"untuned": True},
            "budget": dict(budget or {}),
        },
        headers={"Idempotency-Key": key or secrets.token_hex(16)},
    )


def jobs() -> Call[list[JobModel]]:
    return Call(method="GET", path=f"{_API}jobs", read=_jobs)


def job(job_id: str, wait_s: float = 0.0) -> Call[JobModel]:
    return Call(method="GET", path=_of_job(job_id), read=_job, query={"wait": f"{wait_s:.3f}"}, wait_s=wait_s)


def cancel_job(job_id: str) -> Call[JobModel]:
    return Call(method="POST", path=f"{_of_job(job_id)}/cancel", read=_job)


def forget_job(job_id: str) -> Call[None]:
    return Call(method="DELETE", path=_of_job(job_id), read=_nothing, is_repeatable=False)


def probe(name: str) -> Call[None]:
    return Call(method="GET", path=name, read=_nothing, is_repeatable=False)


def events_headers(last_id: str | None) -> dict[str, str]:
    return {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})


def events_query(kinds: Iterable[str] | None) -> dict[str, str]:
    return {} if kinds is None else {"kinds": ",".join(kinds)}


def _read_page(response: httpx.Response) -> ResultsPage:
    page = _page(response)
    return ResultsPage(page.items, page.next, page.total, response.headers.get("ETag", "*"))


def _nothing(response: httpx.Response) -> None:
    del response


def _of_result(result_id: str) -> str:
    return f"{_API}results/{quote(result_id, safe='')}"


def _of_job(job_id: str) -> str:
    return f"{_API}jobs/{quote(job_id, safe='')}"


def text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
