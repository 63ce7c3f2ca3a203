"""HEAD: what GET answers, without its body, for everything that can be read."""

import time
from collections.abc import Callable

import httpx
import pytest

from tensorplay.service import Service

Run = Callable[[int], str]


@pytest.mark.parametrize(
    "path", ["results", "results.csv", "results.jsonl", "settings", "stats", "untuned.csv", "files"]
)
def test_the_head_is_that_of_get_and_nothing_follows(client: httpx.Client, run: Run, path: str) -> None:
    run(4)
    whole, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "etag", "content-disposition", "content-length"):
        assert head.headers.get(name) == whole.headers.get(name)
    # The connection is still good for the next request.
    assert client.get(path).content == whole.content


def test_a_refusal_is_one_without_a_body_too(client: httpx.Client, service: Service) -> None:
    assert client.head("results/" + "0" * 16).status_code == 404
    assert client.head("results", params={"limt": 1}).status_code == 422
    assert client.head("results", headers={"Host": "other.example"}).status_code == 403
    assert client.head("actions/reresolve").status_code == 405


def test_a_stream_ends_with_its_head_and_keeps_no_place(client: httpx.Client, service: Service) -> None:
    for _ in range(70):
        answer = client.head("events")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    end = time.monotonic() + 20
    while "tensorplay_web_sse_clients 0.0" not in httpx.get(service.url + "metrics").text:
        assert time.monotonic() < end


def test_where_reading_needs_the_token_so_does_the_head(serve: Callable[..., Service]) -> None:
    service = serve(host="0.0.0.0", token="of-the-user")  # noqa: S104, S106 - so that reading needs it
    url = service.url.replace("0.0.0.0", "127.0.0.1") + "api/v1/stats"  # noqa: S104 - as above
    assert httpx.head(url).status_code == 401
    assert httpx.head(url, headers={"Authorization": "Bearer of-the-user"}).status_code == 200


def test_a_link_to_sign_in_is_not_used_up(service: Service) -> None:
    link = service.login_url
    assert httpx.head(link).status_code == 405
    with httpx.Client(follow_redirects=True) as browser:
        assert browser.get(link).status_code == 200
        assert browser.patch(service.url + "api/v1/switches", json={}).status_code == 200
