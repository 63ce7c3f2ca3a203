"""Who listens on every address of a machine is known by each of them, and by no other."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, create_app
from tensorplay.service.app import ServiceSettings
from tensorplay.service.token_check import TokenCheck

TOKEN = "of-this-test"  # noqa: S105 - of this test


def status(context: TuningContext, listens: str, host: str, server: tuple[str, int | None] | None) -> int:
    app = create_app(context, ServiceSettings(token=TOKEN, token_for_reads=True, hosts=frozenset({listens})))

    async def arrived(scope: dict[str, object], receive: object, send: object) -> None:
        await app({**scope, "server": server}, receive, send)  # type: ignore[arg-type] # as httpx gives them

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(arrived)) as client:  # type: ignore[arg-type] # as above
            headers = {"Host": host, "X-TensorPlay-Token": TOKEN}
            return await client.get("http://localhost/api/v1/stats", headers=headers)

    return asyncio.run(ask()).status_code


@pytest.mark.parametrize(
    ("listens", "host", "server", "expected"),
    [
        ("0.0.0.0", "10.1.2.3:8787", ("10.1.2.3", 8787), 200),  # noqa: S104 - what is tested
        ("::", "[fd00::1]:8787", ("fd00:0::1", 8787), 200),
        ("::", "[fe80::1]", ("fe80::1%eth0", 8787), 200),
        ("0.0.0.0", "10.1.2.4", ("10.1.2.3", 8787), 403),  # noqa: S104 - what is tested
        ("0.0.0.0", "evil.example", ("evil.example", 8787), 403),  # noqa: S104 - what is tested
        ("0.0.0.0", "10.1.2.3", None, 403),  # noqa: S104 - what is tested
        ("10.1.2.9", "10.1.2.3", ("10.1.2.3", 8787), 403),
    ],
)
def test_the_address_that_was_asked_is_ours(
    context: TuningContext, listens: str, host: str, server: tuple[str, int | None] | None, expected: int
) -> None:
    assert status(context, listens, host, server) == expected


def test_the_address_needs_the_token_all_the_same(serve: Callable[..., Service]) -> None:
    service = serve(host="", token=TOKEN)
    url = f"http://127.0.0.1:{httpx.URL(service.url).port}/api/v1/stats"
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers={"X-TensorPlay-Token": TOKEN}).status_code == 200


@pytest.mark.parametrize("host", ["localhost.", "LOCALHOST", "ML.example", "ml.example.:80"])
def test_case_and_a_dot_at_the_end_make_no_other_name(serve: Callable[..., Service], host: str) -> None:
    service = serve(hosts=frozenset({"Ml.example."}))
    assert httpx.get(service.url + "livez").status_code == 200
    assert httpx.get(service.url + "api/v1/stats", headers={"Host": host}).status_code == 200


def test_no_address_is_led_to_another_one(service: Service) -> None:
    for path in ("results/", "api/v1/results/", "settings/"):
        answer = httpx.get(service.url + path)
        assert (answer.status_code, "location" in answer.headers) == (404, False), path


@pytest.mark.parametrize(("length", "expected"), [(8, 429), (31, 429), (32, 200)])
def test_a_short_token_is_not_told_from_others_by_who_guesses_too_often(
    serve: Callable[..., Service], length: int, expected: int
) -> None:
    service = serve(token="x" * length)
    guesses = [*map(str, range(6)), service.token]
    url = service.url + "api/v1/switches"
    statuses = [httpx.patch(url, json={}, headers={"X-TensorPlay-Token": each}).status_code for each in guesses]
    assert statuses == [401] * 5 + [429, expected]


def test_those_who_guess_keep_no_other_address_out() -> None:
    check = TokenCheck("short-one")
    for number in range(9):
        with pytest.raises(Exception, match="token"):
            check.check(str(number), {"client": ("10.0.0.1", 1)})
    check.check("short-one", {"client": ("10.0.0.2", 1)})


@pytest.mark.parametrize("port", [-1, 65536, 99999, 1 << 70])
def test_what_is_no_port_is_refused(serve: Callable[..., Service], port: int) -> None:
    with pytest.raises(ValueError, match="allowed: 1 to 65535, or 0"):
        serve(port=port)


@pytest.mark.parametrize(("method", "path"), [("PATCH", "settings"), ("PUT", "settings/tuning")])
def test_where_nothing_can_be_changed_that_is_said_first(serve: Callable[..., Service], method: str, path: str) -> None:
    service = serve(read_only=True)
    headers = {"X-TensorPlay-Token": service.token}
    answer = httpx.request(method, f"{service.url}api/v1/{path}", json={"value": [], "values": 1}, headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:tensorplay:problem:read-only")
