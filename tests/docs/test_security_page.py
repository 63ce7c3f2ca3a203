"""Every refusal that the page on security lists is made by a real server, with the status and the code that it says."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start

Serve = Callable[..., Service]
Docs = Callable[[str], str]
Rows = Callable[..., list[list[str]]]

REFUSED: dict[str, Callable[[Serve], httpx.Response]] = {}


def row(begin: str) -> Callable[[Callable[[Serve], httpx.Response]], Callable[[Serve], httpx.Response]]:
    """Say which row of the table a function asks for, by its first words."""

    def keep(ask: Callable[[Serve], httpx.Response]) -> Callable[[Serve], httpx.Response]:
        REFUSED[begin] = ask
        return ask

    return keep


def change(service: Service, headers: dict[str, str] | None = None, content: bytes = b"{}") -> httpx.Response:
    sent = {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"} | (headers or {})
    return httpx.patch(f"{service.url}api/v1/switches", content=content, headers=sent)


@row("With a `Host`")
def ask_under_another_name(serve: Serve) -> httpx.Response:
    return httpx.get(serve().url + "api/v1/stats", headers={"Host": "evil.example"})


@row("From another page")
def ask_from_another_page(serve: Serve) -> httpx.Response:
    service = serve()
    assert change(service, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert change(service, headers={"Origin": "https://evil.example"}).status_code == 403
    return change(service, headers={"Origin": "null"})


@row("A change without")
def change_without_a_token(serve: Serve) -> httpx.Response:
    return httpx.patch(serve().url + "api/v1/switches", json={})


@row("A sixth wrong token")
def guess(serve: Serve) -> httpx.Response:
    service = serve()
    wrong = {"Authorization": f"Bearer {service.token}x"}
    assert [change(service, wrong).status_code for _ in range(5)] == [401] * 5
    return change(service, wrong)


@row("A change, where it is `read_only`")
def change_what_is_read_only(serve: Serve) -> httpx.Response:
    service = serve(read_only=True)
    assert httpx.patch(service.url + "api/v1/switches", json={"tuning": False}).status_code == 403
    return change(service, content=b'{"tuning": false}')


@row("A body that is not JSON")
def send_a_form(serve: Serve) -> httpx.Response:
    return change(serve(), headers={"Content-Type": "application/x-www-form-urlencoded"}, content=b"tuning=0")


@row("A body above 1 MiB")
def send_a_large_body(serve: Serve) -> httpx.Response:
    return change(serve(), content=b" " * ((1 << 20) + 1))


@row("A body of more than 32,768 commas")
def send_very_many_values(serve: Serve) -> httpx.Response:
    return change(serve(), content=b'{"tuning": [' + b"0," * 32768 + b"0]}")


@row("An address above 4 KiB")
def ask_for_a_long_address(serve: Serve) -> httpx.Response:
    return httpx.get(serve().url + "a" * 4097)


@row("Headers above 16 KiB")
def send_large_headers(serve: Serve) -> httpx.Response:
    return httpx.get(serve().url + "api/v1/stats", headers={"X-Large": "a" * 16385})


@row("More than ten changes a second")
def change_without_end(serve: Serve) -> httpx.Response:
    service = serve()
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx.Client(base_url=service.url, headers=headers) as client:
        answers = [client.patch("api/v1/switches", json={}) for _ in range(20)]
        assert {answer.status_code for answer in answers} == {200}
        for _ in range(500):
            answer = client.patch("api/v1/switches", json={})
            if answer.status_code != 200:
                break
    return answer


@row("The 65th open stream")
def open_many_streams(serve: Serve) -> httpx.Response:
    service = serve()
    with ExitStack() as stack:
        streams = []
        for _ in range(64):
            client = stack.enter_context(httpx.Client())
            answer = stack.enter_context(client.stream("GET", service.url + "api/v1/events"))
            streams.append(answer.iter_lines())
            next(streams[-1])
        refused = httpx.get(service.url + "api/v1/events")
        service.stop()
    return refused


@row("A setting that names a file")
def change_where_files_are(serve: Serve) -> httpx.Response:
    service = serve()
    headers = {"Authorization": f"Bearer {service.token}"}
    for name in ("untuned_filename", "verbose_filename", "dashboard"):
        answer = httpx.put(f"{service.url}api/v1/settings/{name}", json={"value": "x"}, headers=headers)
        assert answer.status_code == 409, name
    return httpx.put(f"{service.url}api/v1/settings/filename", json={"value": "/etc/passwd"}, headers=headers)


@row("A file by a name")
def ask_for_a_file_elsewhere(serve: Serve) -> httpx.Response:
    service = serve()
    for name in ("%2Fetc%2Fpasswd.csv", "a%2Fb.csv", "../a.csv", "..%5Ca.csv", "%252e%252e%252fa.csv"):
        assert httpx.get(f"{service.url}api/v1/files/{name}").status_code in {404, 422}, name
    return httpx.get(f"{service.url}api/v1/files/..%2Fa.csv")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a service of its own, so that no limit was touched before."""
    context = TuningContext(environ={}, directory=tmp_path)
    started: list[Service] = []

    def begin(**options: object) -> Service:
        started.append(start(context=context, **options))  # type: ignore[arg-type] # options of start
        return started[-1]

    yield begin
    for service in started:
        service.stop()
    context.close()


def test_every_row_is_tested(docs: Docs, rows: Rows) -> None:
    listed = [cells[0] for cells in rows(docs("security.md"), "Request", "Answer", "Why")]
    assert len(listed) == len(REFUSED)
    assert all(any(request.startswith(begin) for request in listed) for begin in REFUSED)


@pytest.mark.parametrize("begin", REFUSED)
def test_what_is_refused_is_refused_as_the_page_says(begin: str, serve: Serve, docs: Docs, rows: Rows) -> None:
    (said,) = (
        cells[1] for cells in rows(docs("security.md"), "Request", "Answer", "Why") if cells[0].startswith(begin)
    )
    answer = REFUSED[begin](serve)
    match = re.fullmatch(r"(\d{3}) `([\w-]+)`", said)
    assert match
    assert (answer.status_code, answer.json()["type"]) == (int(match[1]), f"urn:tensorplay:problem:{match[2]}")
    assert answer.headers["content-type"] == "application/problem+json"


def test_what_is_locked_are_files_and_addresses_as_the_page_says(docs: Docs, serve: Serve) -> None:
    items = httpx.get(serve().url + "api/v1/settings").json()["items"]
    locked = {item["name"] for item in items if item["locked"]}
    assert locked == {"filename", "untuned_filename", "verbose_filename", "dashboard"}
    assert "A setting that names a file or an address" in docs("security.md")
