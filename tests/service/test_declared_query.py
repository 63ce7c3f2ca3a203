"""Names in a query: a route of the API takes those that it declares, and says so of any other."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.service.app import create_app

Run = Callable[[int], str]


def operations(context: TuningContext) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in create_app(context).openapi()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_every_route_refuses_a_name_that_it_does_not_declare(client: httpx.Client, context: TuningContext) -> None:
    met = 0
    for method, path, operation in operations(context):
        # Parts of a rank pass their query on, and there is none; the rest watches processes.
        if not path.startswith("/api/v1") or (method == "GET" and "/ranks/{rank}/" in path):
            continue
        address = path.replace("{rank}", "0").replace("{identity}", "0" * 16).replace("{name}", "tuning")
        answer = client.request(method, "../.." + address, params={"limt": "10"})
        while answer.status_code == 429:
            answer = client.request(method, "../.." + address, params={"limt": "10"})
        document = answer.json()
        assert (answer.status_code, document["type"]) == (422, "urn:tensorplay:problem:unknown-parameter"), path
        declared = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
        assert set(document["allowed"]) == declared, path
        assert all(name in document["detail"] for name in declared)
        met += 1
    assert met > 40


def test_the_name_that_may_be_meant_is_said(client: httpx.Client) -> None:
    answer = client.get("results", params={"limt": 10, "srt": "op", "limit": 1})
    document = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert document["detail"].startswith("limt is no query parameter here; allowed: ")
    assert [each["loc"] for each in document["errors"]] == [["query", "limt"], ["query", "srt"]]
    assert "limit may be meant" in document["errors"][0]["msg"] and "sort may be meant" in document["errors"][1]["msg"]
    assert client.get("stats", params={"x": 1}).json()["detail"].endswith("allowed: none")


def test_a_name_that_is_given_twice_is_refused(client: httpx.Client) -> None:
    answer = client.get("results?limit=5&sort=op&limit=500")
    document = answer.json()
    assert (answer.status_code, document["type"]) == (422, "urn:tensorplay:problem:repeated-parameter")
    assert document["detail"].startswith("limit is given more than once")
    assert [each["loc"] for each in document["errors"]] == [["query", "limit"]]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(min_size=1, max_size=90), st.text(max_size=9), min_size=1, max_size=12))
def test_hostile_names_are_told_as_short_text_and_their_values_never(
    client: httpx.Client, query: dict[str, str]
) -> None:
    answer = client.get("stats", params={f"{name}.": f"secret-{value}" for name, value in query.items()})
    assert answer.status_code == 422 and answer.content.isascii() and "secret" not in answer.text
    assert len(answer.json()["errors"]) == min(len(query), 10)
    assert len(answer.content) < 16_384


def test_nothing_is_done_where_a_name_is_wrong(client: httpx.Client, run: Run, context: TuningContext) -> None:
    run(4)
    answer = client.delete("results", params={"confirm": "all", "confrm": "all"}, headers={"If-Match": "*"})
    assert answer.status_code == 422 and len(context.recorded()) == 1


def test_a_page_passes_over_what_it_does_not_know_and_hands_it_to_no_link(service: Service, run: Run) -> None:
    run(4)
    page = httpx.get(service.url + "results?utm_source=mail&q=m4&limit=5", headers={"Accept": "text/html"})
    assert page.status_code == 200 and "api/v1/results.csv?q=m4" in page.text
    assert "utm_source" not in page.text


@pytest.mark.parametrize("path", ["livez", "readyz", "metrics"])
def test_those_who_watch_processes_may_add_what_they_like(service: Service, path: str) -> None:
    assert httpx.get(f"{service.url}{path}?probe=1").status_code == 200
