"""The calls that both clients make to steer winners, lists and files."""

import secrets
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote

import httpx

from tensorplay.service.client.call import Call, reader_of
from tensorplay.service.client.calls import Filters, text_of
from tensorplay.service.file_schemas import LoadReport, SaveReport
from tensorplay.service.schemas import JobModel, Listed, RejectionModel, ResultModel, SettingModel, UntunedModel

__all__ = ["ExportKind"]

ExportKind = Literal["results.csv", "results.jsonl", "results", "rejections.csv", "untuned.csv", "untuned"]
"""What can be exported; without an ending as a results file or an untuned file has it."""

_API = "api/v1/"
_result = reader_of(ResultModel)
_rejection = reader_of(RejectionModel)
_setting = reader_of(SettingModel)
_job = reader_of(JobModel)
_untuned_page = reader_of(Listed[UntunedModel])
_load_report = reader_of(LoadReport)
_save_report = reader_of(SaveReport)


def pin(result_id: str, if_match: str) -> Call[ResultModel]:
    return Call(method="PUT", path=_of("results", result_id, "pin"), read=_result, headers={"If-Match": if_match})


def unpin(result_id: str, if_match: str) -> Call[None]:
    return _deletion(_of("results", result_id, "pin"), if_match)


def withdraw(result_id: str, if_match: str) -> Call[None]:
    return _deletion(_of("results", result_id, "override"), if_match)


def reset(name: str) -> Call[SettingModel]:
    return Call(method="DELETE", path=_of("settings", name), read=_setting)


def forget_all(if_match: str) -> Call[None]:
    return _deletion(f"{_API}results", if_match, {"confirm": "all"})


def rejection(rejection_id: str) -> Call[RejectionModel]:
    return Call(method="GET", path=_of("rejections", rejection_id), read=_rejection)


def retune(rejection_id: str) -> Call[JobModel]:
    # A second one would be refused while the first job runs.
    return Call(method="POST", path=_of("rejections", rejection_id, "retune"), read=_job, is_repeatable=False)


def clear_rejections() -> Call[None]:
    return Call(method="DELETE", path=f"{_API}rejections", read=_nothing)


def untuned_page(cursor: str | None) -> Call[Listed[UntunedModel]]:
    query = {"limit": "500"} | ({"cursor": cursor} if cursor else {})
    return Call(method="GET", path=f"{_API}untuned", read=_untuned_page, query=query)


def forget_untuned(untuned_id: str) -> Call[None]:
    return Call(method="DELETE", path=_of("untuned", untuned_id), read=_nothing, is_repeatable=False)


def forget_all_untuned() -> Call[None]:
    return Call(method="DELETE", path=f"{_API}untuned", read=_nothing, query={"confirm": "all"})


def read_file(name: str) -> Call[bytes]:
    return Call(method="GET", path=_of("files", name), read=_content)


def load_file(name: str, device: str | None, *, overwrite: bool) -> Call[LoadReport]:
    body = {"overwrite": overwrite} | ({"device": device} if device is not None else {})
    return Call(method="POST", path=_of("files", name, "load"), read=_load_report, body=body)


def save_file(name: str, device: str | None, if_match: str | None, key: str | None) -> Call[SaveReport]:
    return Call(
        method="POST",
        path=_of("files", name, "save"),
        read=_save_report,
        body={} if device is None else {"device": device},
        headers={
            "Idempotency-Key": key or secrets.token_hex(16),
            **({"If-None-Match": "*"} if if_match is None else {"If-Match": if_match}),
        },
    )


def export(kind: ExportKind, filters: Filters) -> tuple[str, Mapping[str, str]]:
    """Return path and query of an export."""
    query = {name: text_of(value) for name, value in filters.items() if value is not None}
    if "." in kind:
        return f"{_API}{kind}", query
    return f"{_API}{kind}.csv", query | {"format": "tunableop"}


def _deletion(path: str, if_match: str, query: Mapping[str, str] | None = None) -> Call[None]:
    # Not repeatable, since what was done already would be refused as changed meanwhile.
    headers = {"If-Match": if_match}
    return Call(method="DELETE", path=path, read=_nothing, query=query or {}, headers=headers, is_repeatable=False)


def _of(kind: str, identity: str, part: str = "") -> str:
    return f"{_API}{kind}/{quote(identity, safe='')}{'/' + part if part else ''}"


def _nothing(response: httpx.Response) -> None:
    del response


def _content(response: httpx.Response) -> bytes:
    return response.content
