"""Winners over REST: lists and pages, one in full, exports, overrides and forgetting."""

import csv
import json
from collections.abc import Callable

import httpx
import pytest

from tensorplay.database.csv_text import parse_results
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import scripted_kernel

FIRST, FAST = scripted_kernel(1), scripted_kernel(2)
Run = Callable[[int], str]


def test_a_winner_is_listed_with_its_gain_and_shown_with_every_candidate(client: httpx.Client, run: Run) -> None:
    params = run(4)
    listed = client.get("results").json()
    assert (listed["total"], listed["next"]) == (1, None)
    (item,) = listed["items"]
    assert (item["params"], item["kernel"], item["m"], item["gain"]) == (params, FAST, 4, pytest.approx(2.0))
    whole = client.get(f"results/{item['id']}").json()
    assert whole["verdict"] == "winner"
    assert {each["kernel"] for each in whole["candidates"]} == {FIRST, FAST, scripted_kernel(3)}
    assert whole["confirmation"]["gain"] == pytest.approx(1.0)


def test_pages_follow_one_another_and_what_comes_meanwhile_shifts_none(client: httpx.Client, run: Run) -> None:
    for m in range(10, 20):
        run(m)
    seen: list[int] = []
    cursor: str | None = None
    while True:
        page = client.get("results", params={"sort": "-m", "limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        seen += [item["m"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
        run(100 + len(seen))
    assert seen == list(range(19, 9, -1))


def test_filters_and_sorting_are_those_of_the_query(client: httpx.Client, run: Run) -> None:
    for m in (4, 8, 16, 32):
        run(m)
    assert [
        each["m"] for each in client.get("results", params={"m_min": 8, "m_max": 16, "sort": "m"}).json()["items"]
    ] == [8, 16]
    assert client.get("results", params={"q": "M16_"}).json()["total"] == 1
    assert client.get("results", params={"dtype": "Float64"}).json()["items"] == []
    assert client.get("results", params={"kernel": FAST}).json()["total"] == 4
    for name in ("Float32", "float32", "float", "torch.float"):
        assert client.get("results", params={"dtype": name}).json()["total"] == 4
        page = client.get(f"../../results?dtype={name}", headers={"Accept": "text/html"}).text
        assert all(f"results/{each['id']}" in page for each in client.get("results").json()["items"])
    assert client.get("results", params={"dtype": "double"}).json()["total"] == 0


def test_an_export_of_a_results_file_is_sorted_as_one_and_sent_in_parts(client: httpx.Client, run: Run) -> None:
    for m in (32, 4, 8):
        run(m)
    with client.stream("GET", "results.csv", params={"format": "tunableop"}) as answer:
        parts = list(answer.iter_raw())
    parsed = parse_results(b"".join(parts))
    assert parsed.entries == sorted(parsed.entries)
    assert (len(parsed.entries), parsed.bad_lines) == (3, ())
    assert dict(parsed.validators)["SCRIPTED_VERSION"] == "1"


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 501}, {"sort": "m;drop"}, {"m_min": "x"}, {"m_min": -1}, {"transposed": "perhaps"}],
)
def test_a_query_that_is_none_is_not_valid(client: httpx.Client, query: dict[str, str | int]) -> None:
    assert client.get("results", params=query).status_code == 422


@pytest.mark.parametrize("cursor", ["x", "AAAA", "../..", "e30", "A" * 1000])
def test_a_cursor_of_somebody_else_is_refused(client: httpx.Client, cursor: str) -> None:
    answer = client.get("results", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:tensorplay:problem:bad-cursor")


def test_a_cursor_of_another_sorting_is_refused(client: httpx.Client, run: Run) -> None:
    for m in (4, 8):
        run(m)
    cursor = client.get("results", params={"sort": "m", "limit": 1}).json()["next"]
    assert client.get("results", params={"sort": "n", "cursor": cursor}).status_code == 400


def test_what_has_not_changed_is_not_sent_again(client: httpx.Client, run: Run) -> None:
    run(4)
    tag = client.get("results").headers["etag"]
    assert client.get("results", headers={"If-None-Match": tag}).status_code == 304
    run(8)
    assert client.get("results", headers={"If-None-Match": tag}).status_code == 200


def test_forgetting_needs_the_state_that_was_seen(client: httpx.Client, run: Run, context: TuningContext) -> None:
    run(4)
    item = client.get("results").json()["items"][0]
    assert client.delete(f"results/{item['id']}").status_code == 428
    assert client.delete(f"results/{item['id']}", headers={"If-Match": '"old"'}).status_code == 412
    tag = client.get(f"results/{item['id']}").headers["etag"]
    assert client.delete(f"results/{item['id']}", headers={"If-Match": tag}).status_code == 204
    assert context.get_results() == []
    assert client.get(f"results/{item['id']}").status_code == 404


def test_an_override_is_recorded_if_its_kernel_can_run(client: httpx.Client, run: Run, context: TuningContext) -> None:
    run(4)
    item = client.get("results").json()["items"][0]
    answer = client.put(f"results/{item['id']}/override", json={"kernel": FIRST}, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    assert [row[2] for row in context.get_results()] == [FIRST]
    refused = client.put(
        f"results/{item['id']}/override", json={"kernel": scripted_kernel(99)}, headers={"If-Match": "*"}
    )
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:tensorplay:problem:kernel-not-runnable")


@pytest.mark.parametrize("identity", ["x", "0123456789ABCDEF", "0" * 17, "..%2f..", "%00"])
def test_an_id_that_is_none_names_nothing(client: httpx.Client, identity: str) -> None:
    assert client.get(f"results/{identity}").status_code in {404, 422}


def test_exports_say_the_same_as_the_list(client: httpx.Client, run: Run) -> None:
    params = {run(m) for m in (4, 8)}
    sheet = list(csv.DictReader(client.get("results.csv").text.splitlines()))
    assert {row["params"] for row in sheet} == params
    lines = [json.loads(line) for line in client.get("results.jsonl").text.splitlines()]
    assert {line["params"] for line in lines} == params
    exact = parse_results(client.get("results.csv", params={"format": "tunableop"}).content)
    assert {entry.params for entry in exact.entries} == params
    assert not exact.bad_lines
    assert exact.validators


def test_exports_have_the_gain_and_the_first_choice_and_say_which_winner_it_is(client: httpx.Client, run: Run) -> None:
    run(4)
    (item,) = client.get("results").json()["items"]
    assert item["gain"] is not None
    (line,) = client.get("results.jsonl").text.splitlines()
    (cells,) = csv.DictReader(client.get("results.csv").text.splitlines())
    for name in ("id", "first_choice_ms", "gain", "saved_ms"):
        assert json.loads(line)[name] == item[name]
        assert cells[name] == str(item[name])
    # Programs may count columns.
    assert list(cells)[:4] == ["op", "params", "kernel", "time_ms"]


def test_what_is_not_known_of_a_first_choice_is_an_empty_cell(
    client: httpx.Client, run: Run, context: TuningContext
) -> None:
    params = run(4)
    context.override("GemmTunableOp_Float32", params, "Default")
    (cells,) = csv.DictReader(client.get("results.csv").text.splitlines())
    (item,) = client.get("results").json()["items"]
    assert [cells[name] for name in ("first_choice_ms", "gain", "saved_ms")] == [
        "" if item[name] is None else str(item[name]) for name in ("first_choice_ms", "gain", "saved_ms")
    ]
