"""Untuned signatures over REST: paged by how often they are called, exported, and taken off the list."""

import csv
import time
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.csv_text import parse_untuned
from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service.untuned_list import UntunedRow, page_of, untuned_rows

Run = Callable[[int], str]


@pytest.fixture
def untuned(context: TuningContext, run: Run) -> list[str]:
    """Params of signatures, each called once more than the one before."""
    context.tuning_disable()
    return [{run(m) for _ in range(m)}.pop() for m in (1, 2, 3, 4)]


def test_pages_follow_one_another_the_most_called_first(client: httpx.Client, untuned: list[str]) -> None:
    seen, cursor = [], None
    while True:
        page = client.get("untuned", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        assert page["total"] == 4
        seen += [(item["params"], item["calls"]) for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [(params, calls) for calls, params in reversed(list(enumerate(untuned, 1)))]
    assert client.get("untuned", params={"cursor": "x"}).status_code == 400
    assert client.get("untuned", params={"limit": 501}).status_code == 422


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.text("xy,", max_size=3)), unique=True, max_size=20),
    st.integers(1, 5),
    st.data(),
)
def test_pages_hold_every_signature_once(signatures: list[tuple[str, str]], limit: int, data: st.DataObject) -> None:
    calls = {Signature(*each): data.draw(st.integers(0, 3)) for each in signatures}
    rows = untuned_rows(signatures, calls)
    assert [row.calls for row in rows] == sorted(calls.values(), reverse=True)
    seen: list[UntunedRow] = []
    after = None
    while True:
        page, after = page_of(rows, limit, after)
        seen += page
        if after is None:
            break
    assert seen == list(rows)


def test_they_are_exported_for_people_and_as_the_file_has_them(client: httpx.Client, untuned: list[str]) -> None:
    rows = list(csv.DictReader(client.get("untuned.csv").text.splitlines()))
    assert (rows[0]["params"], rows[0]["calls"]) == (untuned[-1], "4")
    assert list(rows[0]) == ["op", "params", "calls", "first_seen", "last_seen"]
    listed = client.get("untuned").json()["items"]
    assert rows[0]["first_seen"] == listed[0]["first_seen"]
    assert rows[0]["last_seen"] == (listed[0]["last_seen"] or "")
    exact = client.get("untuned.csv", params={"format": "tunableop"})
    assert {params for _, params in parse_untuned(exact.content).signatures} == set(untuned)
    assert client.get("untuned.csv", params={"format": "x"}).status_code == 422


def test_one_or_all_are_taken_off_the_list(client: httpx.Client, untuned: list[str], run: Run) -> None:
    first = client.get("untuned").json()["items"][0]
    assert first["first_seen"] is not None
    assert client.delete(f"untuned/{first['id']}").status_code == 204
    assert client.delete(f"untuned/{first['id']}").status_code == 404
    assert client.get("untuned").json()["total"] == 3
    assert client.delete("untuned").status_code == 422
    assert client.delete("untuned", params={"confirm": "all"}).status_code == 204
    assert client.get("untuned").json()["items"] == []
    run(2)
    assert [item["params"] for item in client.get("untuned").json()["items"]] == [untuned[1]]


def test_a_list_that_is_known_is_not_sent_again_until_one_is_called(
    client: httpx.Client, context: TuningContext, untuned: list[str], run: Run
) -> None:
    del untuned
    first = client.get("untuned", params={"limit": 2})
    tag = {"If-None-Match": first.headers["etag"]}
    again = client.get("untuned", params={"limit": 2}, headers=tag)
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert client.get("untuned", params={"limit": 3}, headers=tag).status_code == 200
    context.plans.clear()
    run(4)
    # Calls are shown as they were a moment ago.
    deadline = time.monotonic() + 20
    while (answer := client.get("untuned", params={"limit": 2}, headers=tag)).status_code == 304:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert answer.json()["items"][0]["calls"] == 5
