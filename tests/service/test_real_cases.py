"""Faults that other dashboards have had, each tried here; `docs/security.md` says what is refused and why.

The rest of such cases have tests where what they concern is tested: hosts, origins and tokens in `test_guard`, names
of files in `test_files`, hostile text in `pages` and `tests/web`, exports in `test_results`, and so on.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.service import Service

TOKEN = "right-and-too-long-to-be-guessed"  # noqa: S105 - of these tests
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
