"""Faults that other dashboards have had, each tried here; `docs/security.md` names the test of each.

Most of such cases have tests where what they concern is tested: other pages in `test_other_origins`, tokens in
`test_guard`, names of files in `test_files`, hostile text in `pages` and `tests/web`, and so on.
"""

import csv
import io
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.service import Service
from tensorplay.service.export import csv_of

ROOT = Path(__file__).parents[2]
TOKEN = "right-and-too-long-to-be-guessed"  # noqa: S105 - of these tests
# Of the case table on the page: what a test is named, below the folder of tests.
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
Serve = Callable[..., Service]


@pytest.fixture
def client(serve: Serve) -> Iterator[httpx.Client]:
    service = serve(token=TOKEN)
    with httpx.Client(base_url=service.url, headers={"X-TensorPlay-Token": TOKEN}) as made:
        yield made


@pytest.mark.parametrize("rank", ["http:%2F%2F169.254.169.254", "%2e%2e%2f", "0%00", "-1", "1e9", "@evil", "0:80"])
def test_a_rank_is_a_number_and_never_an_address(client: httpx.Client, rank: str) -> None:
    assert client.get(f"api/v1/ranks/{rank}/results").status_code in {404, 422}
    assert client.get("api/v1/ranks/0/results", params={"url": "http://evil"}).status_code != 500


def test_a_range_of_thousands_of_parts_costs_nothing(client: httpx.Client) -> None:
    parts = ",".join(f"{start}-" for start in range(0, 12000, 3))
    answer = client.get("static/app.css", headers={"Range": f"bytes={parts}"}, timeout=10)
    assert answer.status_code in {200, 206, 400, 416, 431}


def test_forms_of_several_parts_are_taken_by_no_route(client: httpx.Client) -> None:
    document = client.get("api/v1/openapi.json").json()
    for path, operations in document["paths"].items():
        for method in set(operations) & {"post", "put", "patch"}:
            concrete = path.replace("{", "").replace("}", "").lstrip("/")
            files = {"file": ("x.csv", b"x")}
            answer = client.request(method, concrete, files=files)
            assert answer.status_code in {400, 404, 409, 415, 422, 428, 429}, (method, path, answer.status_code)


def test_the_document_of_the_interface_is_guarded_as_reads_are(serve: Serve) -> None:
    service = serve(token=TOKEN, host="127.0.0.1")
    assert httpx.get(f"{service.url}api/v1/openapi.json", headers={"Host": "evil.example"}).status_code == 403


def test_no_setting_takes_a_path_or_an_address(client: httpx.Client, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.csv"
    settings = client.get("api/v1/settings").json()["items"]
    named = [each["name"] for each in settings if "file" in each["name"] or each["name"] == "dashboard"]
    assert len(named) >= 4
    for name in named:
        answer = client.put(f"api/v1/settings/{name}", json={"value": str(target)}, headers={"If-Match": "*"})
        assert answer.status_code == 409, (name, answer.text)
    assert not target.exists()


def test_parameters_that_switch_something_on_for_debugging_do_nothing(client: httpx.Client) -> None:
    query: dict[str, Any] = {"_trace": "1", "debug": "1", "_debug": "1", "callback": "alert"}
    plain, asked = client.get("api/v1/results"), client.get("api/v1/results", params=query)
    assert asked.status_code in {200, 422}
    if asked.status_code == 200:
        assert asked.json() == plain.json()
        assert asked.headers["content-type"] == plain.headers["content-type"]


def test_no_request_has_a_part_that_could_be_an_address_or_a_folder(client: httpx.Client) -> None:
    document = client.get("api/v1/openapi.json").json()
    assert "webhooks" not in document
    names = set()
    for operations in document["paths"].values():
        for operation in operations.values():
            assert "callbacks" not in operation
            names |= {each["name"].lower() for each in operation.get("parameters", [])}
    for name, model in document["components"]["schemas"].items():
        if name.endswith(("Patch", "Request", "Source", "Override", "Budget", "Value")):
            names |= {each.lower() for each in model.get("properties", {})}
    assert {"limit", "cursor", "values", "kernel", "file"} <= names
    words = {word for name in names for word in re.split(r"[^a-z]+", name)}
    assert not words & {"url", "uri", "href", "path", "folder", "dir", "directory", "host", "callback", "webhook"}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').mkdir('pwned')",
        "${jndi:ldap://evil}",
        "{{ 7 * 7 }}",
        "' OR 1=1 --",
        "op == 'x' or True",
        "*",
        ".*",
        "%",
        "(a+)+$",
    ],
)
def test_a_filter_is_a_text_that_is_compared_and_never_run(
    client: httpx.Client, run: Callable[[int], str], tmp_path: Path, text: str
) -> None:
    run(2)
    for name in ("q", "op", "kernel", "device", "dtype", "origin"):
        answer = client.get("api/v1/results", params={name: text})
        assert answer.status_code == 422 or answer.json()["total"] == 0, name
    assert client.get("api/v1/results", params={"sort": text}).status_code == 422
    assert not list(tmp_path.glob("**/pwned")) and not Path("pwned").exists()


def test_the_socket_itself_is_bound_to_the_loopback_interface(serve: Serve) -> None:
    (server,) = serve()._servers
    assert server.listener.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "wrong",
    [TOKEN[:-1], TOKEN + "x", TOKEN.upper(), TOKEN.replace("-", "_"), "", "*", "null", "undefined", TOKEN[::-1]],
)
def test_a_token_that_is_nearly_right_is_wrong(client: httpx.Client, wrong: str) -> None:
    for headers in ({"X-TensorPlay-Token": wrong}, {"X-TensorPlay-Token": "", "Authorization": f"Bearer {TOKEN}"}):
        assert client.patch("api/v1/switches", json={}, headers=headers).status_code == 401
    for scheme in ("Basic", "Token", "Bearer:", "Bearer Bearer"):
        headers = {"Authorization": f"{scheme} {TOKEN}"}
        assert httpx.patch(f"{client.base_url}api/v1/switches", json={}, headers=headers).status_code == 401


def test_a_token_in_an_address_is_none(client: httpx.Client) -> None:
    for name in ("token", "access_token", "api_key", "X-TensorPlay-Token"):
        answer = httpx.patch(f"{client.base_url}api/v1/switches", params={name: TOKEN}, json={})
        assert answer.status_code == 401, name


@pytest.mark.parametrize("host", ["<img src=x>", "evil.example/<script>", "{{7*7}}", "evil.example:<b>"])
@pytest.mark.parametrize("accept", ["text/html", "*/*"])
def test_a_host_is_not_repeated(client: httpx.Client, host: str, accept: str) -> None:
    answer = client.get("", headers={"Host": host, "Accept": accept})
    assert answer.status_code == 403
    for part in ("<img", "evil", "7*7", "<b>", "<script>"):
        assert part not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_failure_writes_no_token_and_no_cookie_to_the_log(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = serve(token=TOKEN)

    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(service.context, "stats", fail)
    headers = {"X-TensorPlay-Token": TOKEN, "Authorization": f"Bearer {TOKEN}", "Cookie": "tensorplay_x=cookie-value"}
    with caplog.at_level(logging.DEBUG):
        path = "api/v1/stats"
        assert httpx.get(service.url + path, headers=headers).status_code == 500
    own = [each for each in caplog.records if each.name.startswith("tensorplay")]
    assert any("broken" in str(each.exc_info) for each in own)
    written = "".join(logging.Formatter().format(each) for each in own)
    assert TOKEN not in written
    assert "cookie-value" not in written


def test_control_characters_of_an_address_are_written_escaped(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = serve(token=TOKEN)

    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(service._state.jobs, "get", fail)
    assert httpx.get(f"{service.url}api/v1/jobs/%1b[31m%0d%0aINFO").status_code == 500
    (logged,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert not set("\x1b\r\n") & set(logged.getMessage())


@pytest.mark.parametrize("path", ["api/v1/results", "api/v1/stats", "api/v1/results.jsonl", "api/v1/log", "metrics"])
def test_no_answer_can_be_included_by_another_page_as_a_script(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    script = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
    assert client.get(path, headers=script).status_code == 403


@pytest.mark.parametrize(
    "name", ["C:\\x.csv", "C:/x.csv", "\\\\host\\x.csv", "file:x.csv", "~x.csv", "x.csv.", "CON", "nul.csv "]
)
def test_a_name_that_another_system_takes_for_a_path_names_nothing(client: httpx.Client, name: str) -> None:
    quoted = httpx.URL("http://x/", params={"a": name}).query.decode()[2:].replace("+", "%20")
    for method, path in (("GET", ""), ("POST", "/load"), ("POST", "/save")):
        answer = client.request(method, f"api/v1/files/{quoted}{path}", headers={"If-None-Match": "*"})
        assert answer.status_code in {404, 405, 422}, (method, name)


def test_every_case_on_the_page_has_a_test_that_is_there() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").partition("## What others have met")[2]
    rows = [line for line in page.partition("\n## ")[0].splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) >= 37
    for row in rows:
        named = NAMED.findall(row)
        assert named, row
        for path, name in named:
            assert f"def {name}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), (path, name)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_a_formula_is_a_text_in_every_export_for_people(start: str) -> None:
    (_, line) = csv_of(("reason",), [[f"{start}HYPERLINK(1)"]])
    ((cell,),) = csv.reader(io.StringIO(line, newline=""))
    assert cell == f"'{start}HYPERLINK(1)"
