"""Who is let in: each of these was a hole in somebody's dashboard once."""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tensorplay.errors import SettingError
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, create_app
from tensorplay.service.app import ServiceSettings
from tensorplay.service.token_bucket import TokenBucket

UNSAFE = {"POST", "PUT", "PATCH", "DELETE"}


def changing_routes() -> list[tuple[str, str]]:
    paths = create_app(TuningContext(environ={}, directory="/nonexistent")).openapi()["paths"]
    return sorted((method.upper(), path) for path, item in paths.items() for method in item if method.upper() in UNSAFE)


def test_there_are_changing_routes_to_guard() -> None:
    assert {method for method, _ in changing_routes()} == UNSAFE


@pytest.mark.parametrize(("method", "path"), changing_routes())
def test_every_changing_route_needs_the_token(service: Service, method: str, path: str) -> None:
    url = service.url.rstrip("/") + path.replace("{identity}", "0" * 16).replace("{name}", "tuning")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-TensorPlay-Token": ""}):
        answer = httpx.request(method, url, headers=headers, json={})
        assert answer.status_code == 401, (method, path, headers)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["type"] == "urn:tensorplay:problem:token-needed"


@pytest.mark.parametrize(("method", "path"), changing_routes())
def test_a_read_only_service_changes_nothing(serve: Callable[..., Service], method: str, path: str) -> None:
    service = serve(read_only=True)
    url = service.url.rstrip("/") + path.replace("{identity}", "0" * 16).replace("{name}", "tuning")
    bodies: dict[str, Any] = {"jobs": {"source": {"untuned": True}}, "settings/{name}": {"value": True}}
    body = bodies.get(path.removeprefix("/api/v1/"), {"values": {}} if path.endswith("settings") else {})
    if path.endswith("override"):
        body = {"kernel": "Default"}
    answer = httpx.request(method, url, headers={"Authorization": f"Bearer {service.token}"}, json=body)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:tensorplay:problem:read-only"), answer.text
    stranger = httpx.request(method, url, json=body)
    assert (stranger.status_code, stranger.json()["type"]) == (403, "urn:tensorplay:problem:read-only")


def test_a_read_only_service_still_knows_its_name_and_lets_people_sign_in_and_out(
    serve: Callable[..., Service],
) -> None:
    service = serve(read_only=True)
    url = service.url + "api/v1/switches"
    assert httpx.patch(url, json={}, headers={"Host": "evil.example"}).json()["type"].endswith("unknown-host")
    assert httpx.patch(url, json={}, headers={"Origin": "null"}).json()["type"].endswith("cross-site")
    token = {"X-TensorPlay-Token": service.token}
    assert [httpx.post(service.url + path, headers=token).status_code for path in ("login", "logout")] == [204, 204]


def test_who_may_not_even_read_is_not_told_that_nothing_can_be_changed(context: TuningContext) -> None:
    wanted = ServiceSettings(read_only=True, token_for_reads=True)

    async def ask(headers: dict[str, str]) -> httpx.Response:
        transport = httpx.ASGITransport(create_app(context, wanted))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.patch("/api/v1/switches", json={}, headers=headers)

    assert asyncio.run(ask({})).status_code == 401
    assert asyncio.run(ask({"X-TensorPlay-Token": wanted.token})).status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "a@127.0.0.1:b",
        "10.0.0.1",
    ],
)
def test_a_name_that_is_not_ours_is_refused_whatever_the_browser_says(service: Service, host: str) -> None:
    for agent in ("Mozilla/5.0", "curl/8"):
        answer = httpx.get(service.url + "api/v1/stats", headers={"Host": host, "User-Agent": agent})
        assert answer.status_code in {400, 403}, host


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1", "127.0.0.2:80", "[::1]:80"])
def test_names_of_this_machine_are_ours_with_any_port(service: Service, host: str) -> None:
    assert httpx.get(service.url + "api/v1/stats", headers={"Host": host}).status_code == 200


def test_a_configured_name_is_ours(serve: Callable[..., Service]) -> None:
    service = serve(hosts=frozenset({"hub.example"}))
    assert httpx.get(service.url + "api/v1/stats", headers={"Host": "hub.example:443"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "script"},
    ],
)
def test_another_page_is_refused_even_with_the_token_and_a_cookie(service: Service, headers: dict[str, str]) -> None:
    with_token = headers | {"Authorization": f"Bearer {service.token}", "Cookie": "tensorplay_x=1"}
    assert httpx.get(service.url + "api/v1/stats", headers=with_token).status_code == 403
    answer = httpx.patch(service.url + "api/v1/switches", json={"tuning": False}, headers=with_token)
    assert answer.status_code == 403


def test_our_own_page_is_not(service: Service) -> None:
    own = f"http://{urlsplit(service.url).netloc}"
    assert httpx.get(service.url + "api/v1/stats", headers={"Origin": own}).status_code == 200
    assert httpx.get(service.url + "api/v1/stats", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_no_answer_lets_another_origin_read_it_and_every_answer_is_locked_down(service: Service) -> None:
    for path in ("api/v1", "api/v1/results", "livez", "nothing", "api/v1/results.csv"):
        answer = httpx.get(service.url + path, headers={"Origin": "http://127.0.0.1"} if path == "livez" else {})
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", '"><img src=x>']
)
def test_a_body_that_does_not_say_it_is_json_is_refused_and_not_repeated(service: Service, kind: str) -> None:
    headers = {"Authorization": f"Bearer {service.token}", "Content-Type": kind}
    answer = httpx.patch(service.url + "api/v1/switches", content=json.dumps({"tuning": False}), headers=headers)
    assert answer.status_code in {415, 422}
    assert "img" not in answer.text


def test_a_body_that_is_too_large_is_refused_however_it_is_sent(service: Service) -> None:
    headers = {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"}
    large = b'{"tuning": ' + b" " * (1 << 20) + b"true}"
    assert httpx.patch(service.url + "api/v1/switches", content=large, headers=headers).status_code == 413
    chunked = (large[start : start + 65536] for start in range(0, len(large), 65536))
    try:
        answer = httpx.patch(service.url + "api/v1/switches", content=chunked, headers=headers)
    except (httpx.RemoteProtocolError, httpx.WriteError):
        return
    assert answer.status_code == 413


def test_wrong_tokens_are_counted(service: Service) -> None:
    answers = [
        httpx.patch(service.url + "api/v1/switches", json={}, headers={"Authorization": f"Bearer {n}"}).status_code
        for n in range(8)
    ]
    assert answers[0] == 401
    assert answers[-1] == 429
    right = httpx.patch(service.url + "api/v1/switches", json={}, headers={"Authorization": f"Bearer {service.token}"})
    assert right.status_code == 200


def test_jupyters_own_token_is_none_of_ours(service: Service) -> None:
    headers = {"Authorization": "token abc", "X-TensorPlay-Token": service.token}
    assert httpx.patch(service.url + "api/v1/switches", json={}, headers=headers).status_code == 200
    assert (
        httpx.patch(service.url + "api/v1/switches", json={}, headers={"Authorization": "token abc"}).status_code == 401
    )


def test_it_listens_on_the_loopback_interface_and_elsewhere_only_with_a_token(serve: Callable[..., Service]) -> None:
    with pytest.raises(SettingError, match="token"):
        serve(host="0.0.0.0")  # noqa: S104 - refused
    service = serve(host="0.0.0.0", token="a token of mine")  # noqa: S104, S106 - what is tested
    port = urlsplit(service.url).port
    url = f"http://127.0.0.1:{port}/api/v1/stats"
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers={"Authorization": "Bearer a token of mine"}).status_code == 200


def test_by_default_nobody_else_reaches_the_socket(service: Service) -> None:
    assert urlsplit(service.url).hostname == "127.0.0.1"


@pytest.mark.parametrize(
    "path", ["<script>alert(1)</script>", "%3Cimg%20src%3Dx%3E", "..%2f..%2fetc%2fpasswd", "a" * 5000]
)
def test_an_error_never_repeats_the_address(service: Service, path: str) -> None:
    answer = httpx.get(service.url + path)
    assert answer.status_code in {404, 414}
    assert "script" not in answer.text
    assert "img" not in answer.text
    assert "passwd" not in answer.text


def test_liveness_answers_under_any_name_and_nothing_else_does(service: Service) -> None:
    headers = {"Host": "10.1.2.3:8080"}
    assert httpx.get(service.url + "livez", headers=headers).status_code == 200
    assert httpx.get(service.url + "readyz", headers=headers).status_code == 200
    assert httpx.get(service.url + "metrics", headers=headers).status_code == 403


def test_bytes_that_are_no_request_end_the_connection_only(service: Service) -> None:
    port = urlsplit(service.url).port or 0
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"\x00\xff nonsense\r\n\r\n")
        assert b"400" in connection.recv(1000)
    assert httpx.get(service.url + "livez").status_code == 200


def test_a_bucket_gives_no_more_than_it_holds_and_forgets_old_addresses() -> None:
    bucket = TokenBucket(rate=0.0, most=3.0)
    assert [bucket.take("a") for _ in range(5)] == [True, True, True, False, False]
    for number in range(3000):
        assert bucket.take(str(number))
    assert len(bucket._levels) <= 1024
