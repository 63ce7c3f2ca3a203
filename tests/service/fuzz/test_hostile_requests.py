"""What no document describes: broken bodies, numbers without end, text that is none, and pages asked for nonsense."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorplay.service.identity import result_id

OP = "GemmTunableOp_Float32"
TOKEN = {"X-TensorPlay-Token": "right-and-too-long-to-be-guessed"}
JSON = {**TOKEN, "Content-Type": "application/json"}
HUGE = "9" * 5000
PAGES = ("", "results", "untuned", "rejections", "jobs", "settings", "events", "devices", "login", "static/app.css")
BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"0",
    b'""',
    b"\x00",
    b"\xff\xfe{}",
    b'{"value": NaN}',
    b'{"value": 1e999}',
    b'{"value": "\\ud800"}',
    b'{"value": "\\u0000"}',
    b'{"\\ud800": 1}',
    b'{"kernel": "\\ud800"}',
    b'{"kernel": "\\u0000"}',
    b'{"values": {"\\ud800": 1}}',
    b'{"values": {"verbose": "\\ud800"}}',
    b'{"values": {"log_level": {"a": ["\\ud800"]}}}',
    b'{"source": {"signatures": [{"op": "\\ud800", "params": "\\udfff"}]}}',
    b'{"enabled": true, "enabled": "\\ud800"}',
    f'{{"value": {HUGE}}}'.encode(),
    f'{{"values": {{"min_gain": {HUGE}}}}}'.encode(),
    f'{{"values": {{"max_tuning_samples": -{HUGE[:4000]}}}}}'.encode(),
    f'{{"max_tuning_duration_ms": {HUGE[:4000]}, "total_tuning_seconds": {HUGE[:4000]}}}'.encode(),
    f'{{"total_tuning_seconds": 1e{HUGE[:300]}}}'.encode(),
    b"[" * 100_000,
    b'{"value": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"value": "' + b"a" * 1_000_000 + b'"}',
    b" " * (1 << 20) + b"{}",
]
QUERIES = [
    "%00", "%ff=%ff", "%ed%a0%80=%ed%a0%80", "q=%00", "q=%ff%fe", "q=%ed%a0%80", "sort=%00", f"limit={HUGE[:3000]}",
    "limit=-1", "limit=1e3", "cursor=%00", "cursor=%ff", "cursor=AAAA", "cursor=%ed%a0%80", f"since={HUGE[:3000]}",
    f"m_min={HUGE[:3000]}", "m_min=%D9%A3", "q=" + "a" * 4000, "&" * 3000, "=" * 3000, "a=1&" * 900, "kind=%00",
    "wait=inf", "wait=-1", "columns=%00", "_partial=%00", "healed=%ff", "code=%00", "code=%ed%a0%80", "code=%C3%A9",
    "v=%00", "wait=nan", "kinds=%00", "transposed=%00", "format=%ff",
]  # fmt: skip
HEADERS: list[dict[str, str | bytes]] = [
    {"Accept": b"\xff\xfe"},
    {"Accept": "text/html"},
    {"Cookie": b"\x00=\x00; a=\xff; tensorplay_=%"},
    {"Cookie": "a=" + "b" * 15_000},
    {"X-Long": "a" * 20_000},
    {"If-None-Match": b"\xff" * 100},
    {"If-Match": "\x00"},
    {"If-Match": "," * 5000},
    {"Last-Event-ID": HUGE},
    {"Idempotency-Key": b"\x00\xff"},
    {"Content-Length": HUGE},
    {"Content-Length": b"\xb2"},
    {"Content-Length": "-1"},
    {"Content-Type": b"\xff/\x00"},
    {"Content-Type": "application/json; charset=\x00"},
    {"Content-Type": "application/json; charset=utf-16"},
    {"Host": b"\xff"},
    {"Host": "[::1"},
    {"Host": "localhost:99999999"},
    {"Origin": "http://[::1"},
    {"Origin": b"\xff"},
    {"Sec-Fetch-Site": b"\xff"},
    {"Authorization": b"Bearer \xff\x00"},
    {"X-TensorPlay-Token": b"\xc3\xa9"},
    {"X-Forwarded-Prefix": "\x00"},
]


@pytest.fixture
def addresses(operations: list[Any], run: Callable[[int], str]) -> list[tuple[str, str]]:
    """Method and address of every operation, where there is something under it."""
    run(2)
    identity = result_id(OP, run(3))
    return [
        (
            each.method.upper(),
            each.path.replace("{identity}", identity).replace("{name}", "min_gain").replace("{", "").replace("}", ""),
        )
        for each in operations
    ]


def test_a_body_that_is_none_is_refused_and_never_a_failure(addresses: list[tuple[str, str]], caller: Any) -> None:
    for method, path in addresses:
        if method == "GET":
            continue
        for body in BODIES:
            for headers in (JSON, {**JSON, "If-Match": "*"}, TOKEN):
                answer = caller.ask(method, path, headers=headers, body=body)
                answer.check()
                if answer.status < 300 and answer.body:
                    json.loads(answer.body)


FORMS = [
    b"token=", b"token=%00", b"token=%ff%fe", b"token=%ed%a0%80", b"token", b"&" * 2000, b"=" * 2000, b"a=1;" * 500,
    b"token=wrong&token=right-and-too-long-to-be-guessed",
    b"next=//evil.example&token=%E2%98%83", b"token=" + b"%" * 5000,
    b"%74oken=\xe9",
]  # fmt: skip


def test_a_form_that_is_none_is_refused_and_never_a_failure(caller: Any) -> None:
    for kind in ("application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=\x00"):
        for body in (*FORMS, *BODIES):
            for accept in ("text/html", "*/*"):
                answer = caller.ask("POST", "/login", headers={"Content-Type": kind, "Accept": accept}, body=body)
                answer.check()
                assert answer.status >= 400
                assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("headers", [TOKEN, {**TOKEN, "Accept": "text/html"}], ids=["program", "person"])
def test_a_query_that_is_none_is_never_a_failure(
    addresses: list[tuple[str, str]], caller: Any, headers: dict[str, str]
) -> None:
    paths = [path for method, path in addresses if method == "GET"] + [f"/{page}" for page in PAGES]
    for path in paths:
        for query in QUERIES:
            caller.ask("GET", path, query, headers).check()


def test_a_header_that_is_none_is_never_a_failure(addresses: list[tuple[str, str]], caller: Any) -> None:
    for method, path in [*addresses, *(("GET", f"/{page}") for page in PAGES), ("POST", "/login")]:
        for headers in HEADERS:
            body = b"" if method == "GET" else b"{}"
            caller.ask(method, path, headers={**JSON, **headers}, body=body).check()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"])
def test_no_path_is_a_failure_under_any_method(caller: Any, method: str) -> None:
    odd = (
        "%00",
        "%ff",
        "%ed%a0%80",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/",
        "a" * 3000,
        "%",
        "%zz",
        "results%2f1",
        "//",
        ".",
    )
    prefixes = ("/", "/api/v1/", "/api/v1/results/", "/api/v1/jobs/", "/api/v1/settings/", "/static/", "/results/")
    for prefix in prefixes:
        for name in odd:
            caller.ask(method, prefix + name, headers={**JSON, "If-Match": "*"}, body=b'{"value": 1}').check()


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(body=st.binary(max_size=200), query=st.binary(max_size=60), header=st.binary(max_size=60))
def test_any_bytes_anywhere_are_never_a_failure(caller: Any, body: bytes, query: bytes, header: bytes) -> None:
    for name in ("If-Match", "Authorization", "Cookie", "Accept", "Host", "Origin", "Content-Type"):
        caller.ask("PATCH", "/api/v1/settings", query, {**JSON, name: header}, body).check()
        caller.ask("GET", "/results", query, {"Accept": "text/html", name: header}).check()
