"""Changes to one rank or to all: the token of the first one counts, and each answers for itself."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest


@pytest.fixture(scope="module")
def ranks(make_job: Callable[..., Any]) -> Any:
    job = make_job()
    first, second = job.start(0), job.start(1)
    # This one may be watched, and not changed.
    third = job.start(2, options={"read_only": True})
    assert first.url and second.url and third.url
    return [first, second, third]


@pytest.fixture
def first(ranks: Any) -> Any:
    with ranks[0].client() as client:
        yield client


def switch(client: httpx.Client, number: int) -> bool:
    value: bool = client.get(f"api/v1/ranks/{number}/switches").json()["tuning"]["value"]
    return value


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", "all/switches"), ("PATCH", "1/budgets"), ("PATCH", "1/settings"), ("POST", "all/jobs"),
        ("POST", "1/files/save"), ("DELETE", f"1/results/{'0' * 16}"), ("PUT", f"1/results/{'0' * 16}/override"),
        ("POST", f"1/jobs/{'0' * 16}/cancel"),
    ],
)  # fmt: skip
def test_the_token_of_the_first_rank_is_needed(ranks: Any, method: str, path: str) -> None:
    answer = httpx.request(method, f"{ranks[0].url}api/v1/ranks/{path}", json={"tuning": False})
    assert answer.status_code == 401


def test_the_token_of_another_rank_is_none(ranks: Any) -> None:
    headers = {"Authorization": f"Bearer {ranks[1].token}"}
    answer = httpx.patch(f"{ranks[0].url}api/v1/ranks/1/switches", json={"tuning": False}, headers=headers)
    assert answer.status_code == 401


def test_a_page_of_others_cannot_change_a_rank(first: httpx.Client) -> None:
    headers, before = {"Origin": "http://evil.example"}, switch(first, 1)
    change = {"tuning": not before}
    assert first.patch("api/v1/ranks/all/switches", json=change, headers=headers).status_code == 403
    assert switch(first, 1) is before


def test_a_change_to_one_rank_is_that_ranks_alone(first: httpx.Client) -> None:
    first.patch("api/v1/ranks/1/switches", json={"tuning": True})
    answer = first.patch("api/v1/ranks/1/switches", json={"tuning": False})
    assert (answer.status_code, answer.json()["tuning"]["value"]) == (200, False)
    assert [switch(first, number) for number in range(3)] == [True, False, True]
    first.patch("api/v1/ranks/1/switches", json={"tuning": True})


def test_a_change_to_all_tells_what_each_answered(first: httpx.Client) -> None:
    answer = first.patch("api/v1/ranks/all/settings", json={"values": {"min_gain": 0.25}})
    assert answer.status_code == 207
    told = {each["local_rank"]: each for each in answer.json()["items"]}
    assert {number: each["status"] for number, each in told.items()} == {0: 200, 1: 200, 2: 403}
    assert told[1]["body"]["min_gain"]["value"] == 0.25
    assert told[2]["body"]["type"] == "urn:tensorplay:problem:read-only"


def test_what_does_not_fit_is_sent_to_nobody(first: httpx.Client) -> None:
    assert first.patch("api/v1/ranks/all/switches", json={"tuning": "no"}).status_code == 422
    assert first.patch("api/v1/ranks/all/switches", json={"nonsense": True}).status_code == 422
    assert first.patch("api/v1/ranks/every/switches", json={"tuning": False}).status_code == 422
    assert first.patch("api/v1/ranks/5/switches", json={"tuning": False}).status_code == 404
    assert first.patch("api/v1/ranks/all/switches", content=b"{}").status_code == 415
    locked = first.patch("api/v1/ranks/1/settings", json={"values": {"filename": "/etc/x.csv"}})
    assert (locked.status_code, locked.json()["type"]) == (409, "urn:tensorplay:problem:locked")


def test_a_rank_measures_what_it_is_told_to(
    first: httpx.Client, ranks: Any, product: str, eventually: Callable[[Callable[[], Any]], Any]
) -> None:
    first.patch("api/v1/ranks/1/switches", json={"tuning": False})
    ranks[1].run(product)
    started = first.post("api/v1/ranks/1/jobs", json={"source": {"untuned": True}})
    assert started.status_code == 202, started.text
    # As after a redirect: relative to the list of jobs of that rank.
    assert started.headers["location"] == f"jobs/{started.json()['id']}"
    path = f"api/v1/ranks/1/jobs/{started.json()['id']}"
    assert eventually(lambda: first.get(path).json()["state"] == "succeeded")
    winner = first.get("api/v1/ranks/1/results").json()["items"][0]
    assert first.post(f"{path}/cancel").status_code == 200
    forgotten = first.delete(f"api/v1/ranks/1/results/{winner['id']}", headers={"If-Match": "*"})
    assert (forgotten.status_code, forgotten.content) == (204, b"")
    assert first.delete(f"api/v1/ranks/1/results/{winner['id']}").status_code == 404
    assert first.get("api/v1/ranks/0/results").json()["total"] == 0


def test_all_ranks_write_their_files(first: httpx.Client) -> None:
    answer = first.post("api/v1/ranks/all/files/save")
    assert [each["status"] for each in answer.json()["items"]] == [200, 200, 403]


def test_all_ranks_decide_their_products_anew(first: httpx.Client, ranks: Any) -> None:
    answer = first.post("api/v1/ranks/all/actions/reresolve")
    assert [each["status"] for each in answer.json()["items"]] == [202, 202, 403]
    assert set(answer.json()["items"][1]["body"]) == {"plans"}
    assert first.post("api/v1/ranks/1/actions/reresolve").status_code == 202
    without = httpx.post(f"{ranks[0].url}api/v1/ranks/1/actions/reresolve")
    assert without.status_code == 401
