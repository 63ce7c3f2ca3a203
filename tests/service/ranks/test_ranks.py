"""What the first rank tells of all: three real processes of a job that should have four."""

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families


@pytest.fixture(scope="module")
def ranks(make_job: Callable[..., Any], product: str) -> Any:
    started = make_job().start_all(3, LOCAL_WORLD_SIZE="4")
    for rank in started:
        assert rank.run(product) == "(4, 8)"
    return started


@pytest.fixture(scope="module")
def first(ranks: Any) -> Iterator[httpx.Client]:
    with ranks[0].client() as client:
        yield client


def test_each_rank_is_told_with_what_it_counts(ranks: Any, first: httpx.Client) -> None:
    told = first.get("api/v1/ranks").json()
    assert (told["total"], [each["local_rank"] for each in told["items"]]) == (4, [0, 1, 2, 3])
    assert [each["is_own"] for each in told["items"]] == [True, False, False, False]
    for rank, each in zip(ranks, told["items"], strict=False):
        assert (each["state"], each["reason"]) == ("reachable", None)
        summary = each["summary"]
        assert (summary["pid"], summary["rank"], summary["world_size"]) == (rank.pid, 8 + rank.number, 16)
        assert (summary["devices"], summary["results"], summary["stats"]["measured"]) == (["cpu"], 1, 1)
        assert first.get(f"api/v1/ranks/{rank.number}").json()["summary"]["pid"] == rank.pid


def test_a_rank_that_is_missing_is_told_with_what_to_do(first: httpx.Client) -> None:
    missing = first.get("api/v1/ranks/3").json()
    assert (missing["state"], missing["summary"]) == ("unreachable", None)
    assert "tensorplay.service.start()" in missing["reason"]
    answer = first.get("api/v1/ranks/3/results")
    assert (answer.status_code, answer.json()["type"]) == (502, "urn:tensorplay:problem:rank-unreachable")
    assert answer.headers["content-type"] == "application/problem+json"


def test_only_the_first_rank_listens_on_an_address(ranks: Any) -> None:
    def listening(rank: Any) -> list[str]:
        found = psutil.Process(rank.pid).net_connections(kind="inet")
        return [each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN]

    assert [listening(rank) for rank in ranks] == [["127.0.0.1"], [], []]
    assert [rank.url.partition(":")[0] for rank in ranks] == ["http", "unix", "unix"]


def test_nobody_else_can_look_into_the_folder_and_no_token_lies_there(ranks: Any) -> None:
    folder = ranks[0].run("started._presence._line.folder")
    walked = list(Path(folder).rglob("*"))
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in walked}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if not path.is_dir()} == {0o600}
    records = [path.read_text() for path in walked if path.suffix == ".json"]
    assert len(records) == 3
    assert not [rank for rank in ranks for text in records if rank.token in text]


@pytest.mark.parametrize(
    "part",
    ["settings", "switches", "budgets", "results", "results?limit=1", "rejections", "untuned", "jobs", "files",
     "validators", "log", "results.csv", "results.jsonl", "stats", "devices", "runtime",
     "explain?op=GemmTunableOp_Float32&params=x", "results?limt=1"],
)  # fmt: skip
def test_what_is_read_of_a_rank_is_what_it_answers_itself(ranks: Any, first: httpx.Client, part: str) -> None:
    name = {"X-Request-ID": "asked-of-both"}
    with ranks[1].client() as itself:
        expected = itself.get(f"api/v1/{part}", headers=name)
        answer = first.get(f"api/v1/ranks/1/{part}", headers=name)
    assert (answer.status_code, answer.content) == (expected.status_code, expected.content)
    assert answer.headers["content-type"] == expected.headers["content-type"]
    assert answer.headers.get("etag") == expected.headers.get("etag")
    assert answer.headers["content-security-policy"]


def test_a_winner_of_a_rank_is_explained_by_that_rank(ranks: Any, first: httpx.Client) -> None:
    winner = first.get("api/v1/ranks/1/results").json()["items"][0]
    query = {"op": winner["op"], "params": winner["params"]}
    answer = first.get("api/v1/ranks/1/explain", params=query)
    assert answer.json()["kernel"] == winner["kernel"]
    assert first.get("api/v1/ranks/1/explain", params=query, headers={"If-None-Match": answer.headers["etag"]}
                     ).status_code == 304  # fmt: skip


def test_one_winner_of_a_rank_is_read_by_its_id_and_not_again_when_it_is_the_same(first: httpx.Client) -> None:
    page = first.get("api/v1/ranks/1/results")
    winner = page.json()["items"][0]
    detail = first.get(f"api/v1/ranks/1/results/{winner['id']}").json()
    assert "candidates" in detail and detail["kernel"] == winner["kernel"]
    assert first.get("api/v1/ranks/1/results", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    assert first.get(f"api/v1/ranks/1/results/{'0' * 16}").status_code == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("7", 404), ("7/results", 404), ("-1", 422), ("x", 422), ("1e0/stats", 422), ("99999999999", 422),
        ("1/events", 422), ("1/openapi.json", 422), ("1/ranks", 422), ("1/..%2f..%2flogin", 404), ("1/%2e%2e", 422),
        ("1/results/..%2f..%2fstats", 404), ("1/results/x", 422), ("1/http:%2f%2fexample.org", 404), ("1/", 404),
    ],
)  # fmt: skip
def test_nothing_else_of_a_rank_can_be_asked_for(first: httpx.Client, path: str, status: int) -> None:
    answer = first.get(f"api/v1/ranks/{path}")
    assert answer.status_code in {status, 404, 307}, answer.text
    assert answer.status_code != 307 or "example" not in answer.headers["location"]


def test_settings_that_differ_are_told_with_each_value(ranks: Any, first: httpx.Client) -> None:
    ranks[2].run("tensorplay.tunable.set_max_tuning_iterations(7)")
    told = first.get("api/v1/ranks").json()["items"]
    assert [each["differs"] for each in told] == [
        {"max_tuning_samples": 100}, {"max_tuning_samples": 100}, {"max_tuning_samples": 7}, {},
    ]  # fmt: skip
    ranks[2].run("tensorplay.tunable.set_max_tuning_iterations(100)")
    assert not any(each["differs"] for each in first.get("api/v1/ranks").json()["items"])


def test_winners_that_differ_are_found_by_their_shape(ranks: Any, first: httpx.Client) -> None:
    kernels = {}
    for rank in ranks:
        with rank.client() as client:
            winner = client.get("api/v1/results").json()["items"][0]
            kernels[rank.number] = "Default" if rank.number == 1 else "host_numpy_dot1"
            body = {"kernel": kernels[rank.number]}
            answer = client.put(f"api/v1/results/{winner['id']}/override", json=body, headers={"If-Match": "*"})
            assert answer.status_code == 200, answer.text
    told = first.get("api/v1/ranks/disagreements").json()
    assert told["total"] == 1
    (found,) = told["items"]
    assert (found["shape_id"], found["params"]) == (winner["shape_id"], "taN_m4_n8_k8_bias0")
    assert {each["local_rank"]: each["kernel"] for each in found["winners"]} == kernels
    page = first.get("ranks", headers={"Accept": "text/html"}).text
    assert "taN_m4_n8_k8_bias0" in page and "Default" in page


def test_metrics_of_all_ranks_have_the_rank_as_a_label(first: httpx.Client) -> None:
    families = {each.name: each for each in text_string_to_metric_families(first.get("metrics").text)}
    up = {each.labels["rank"]: each.value for each in families["tensorplay_rank_up"].samples}
    assert up == {"0": 1, "1": 1, "2": 1, "3": 0}
    results = {each.labels["rank"]: each.value for each in families["tensorplay_results"].samples}
    assert results == {"0": 1, "1": 1, "2": 1}
    assert {each.labels["rank"] for each in families["tensorplay_gemm_calls"].samples} == {"0", "1", "2"}


def test_another_rank_tells_its_own_metrics_alone(ranks: Any) -> None:
    with ranks[1].client() as client:
        text = client.get("metrics").text
    assert "tensorplay_results 1.0" in text and "rank=" not in text


def test_the_page_shows_every_rank_and_leads_to_its_winners(ranks: Any, first: httpx.Client) -> None:
    page = first.get("ranks", headers={"Accept": "text/html"}).text
    assert page.count('<span class="state on">reachable</span>') == 3
    assert page.count("unreachable") == 1
    assert 'href="./ranks/1/results"' in page and 'href="./results"' in page
    assert str(ranks[2].pid) in page
    results = first.get("ranks/1/results", headers={"Accept": "text/html"})
    assert results.status_code == 200
    assert "taN_m4_n8_k8_bias0_devcpu" in results.text and 'href="../../ranks"' in results.text
    assert "Nothing fits the filter" in first.get("ranks/1/results?q=nothing", headers={"Accept": "text/html"}).text
    gone = first.get("ranks/9/results", headers={"Accept": "text/html"})
    assert gone.status_code == 404 and "text/html" in gone.headers["content-type"]


def test_each_rank_can_be_asked_for_all_of_them(ranks: Any) -> None:
    with ranks[1].client() as client:
        told = client.get("api/v1/ranks").json()["items"]
    assert [each["is_own"] for each in told] == [False, True, False, False]
    assert json.dumps(told).count("reachable") == 4
