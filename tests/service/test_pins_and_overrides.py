"""Pins, overrides taken back, everything forgotten, and the history of a winner, over REST."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
ANY = {"If-Match": "*"}
Run = Callable[[int], str]


@pytest.fixture
def one(client: httpx.Client, run: Run) -> str:
    """The path of a winner."""
    run(4)
    return f"results/{client.get('results').json()['items'][0]['id']}"


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


def test_a_pin_needs_the_state_that_was_seen_and_shows_everywhere(client: httpx.Client, one: str) -> None:
    assert code(client.put(f"{one}/pin")) == (428, "if-match-needed")
    assert code(client.put(f"{one}/pin", headers={"If-Match": '"old"'})) == (412, "changed")
    tag = client.get("results").headers["etag"]
    pinned = client.put(f"{one}/pin", headers={"If-Match": tag})
    assert (pinned.status_code, pinned.json()["pinned"]) == (200, True)
    assert pinned.headers["etag"] == client.get("results").headers["etag"] != tag
    assert client.put(f"{one}/pin", headers=ANY).status_code == 200
    assert client.get("results", params={"pinned": True}).json()["total"] == 1
    assert client.get("results", params={"pinned": False}).json()["total"] == 0
    assert "True" in client.get("results.csv").text.splitlines()[1]
    assert client.get(one).json()["pinned"] is True
    assert client.delete(f"{one}/pin").status_code == 428
    assert client.delete(f"{one}/pin", headers=ANY).status_code == 204
    assert client.delete(f"{one}/pin", headers=ANY).status_code == 204
    assert client.get("results", params={"pinned": True}).json()["total"] == 0
    assert client.put("results/0123456789abcdef/pin", headers=ANY).status_code == 404


def test_a_pinned_winner_is_changed_by_nobody(client: httpx.Client, one: str, context: TuningContext) -> None:
    client.put(f"{one}/pin", headers=ANY)
    answers = [
        client.delete(one, headers=ANY),
        client.put(f"{one}/override", json={"kernel": SLOW}, headers=ANY),
        client.delete(f"{one}/override", headers=ANY),
        client.delete("results", params={"confirm": "all"}, headers=ANY),
    ]
    assert {code(answer) for answer in answers} == {(409, "pinned")}
    assert answers[-1].json()["pinned"] == [one.partition("/")[2]]
    assert [row[2] for row in context.get_results()] == [FAST]


def test_a_pin_that_the_program_set_counts_even_between_two_looks(
    client: httpx.Client, one: str, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if it had been pinned between the look and the change.
    monkeypatch.setattr("tensorplay.service.routes.result_changes._check_free", lambda _: None)
    context.pin_winner(*context.get_results()[0][:2])
    assert code(client.delete(one, headers=ANY)) == (409, "pinned")
    assert code(client.put(f"{one}/override", json={"kernel": SLOW}, headers=ANY))[0] == 409


def test_going_back_from_an_override_restores_the_winner_before(client: httpx.Client, one: str) -> None:
    assert code(client.delete(f"{one}/override", headers=ANY)) == (409, "no-override")
    client.put(f"{one}/override", json={"kernel": SLOW}, headers=ANY)
    assert client.delete(f"{one}/override").status_code == 428
    assert client.delete(f"{one}/override", headers={"If-Match": '"x"'}).status_code == 412
    assert client.delete(f"{one}/override", headers=ANY).status_code == 204
    told = client.get(one).json()
    assert (told["kernel"], told["origin"], told["verdict"]) == (FAST, "measured here", "winner")
    assert [(past["kernel"], past["origin"]) for past in told["history"]] == [
        (FAST, "measured here"),
        (SLOW, "override"),
        (FAST, "measured here"),
    ]
    assert all(past["time"] for past in told["history"])


def test_an_override_of_what_was_never_measured_is_forgotten_when_it_is_taken_back(
    client: httpx.Client, context: TuningContext, backend: ScriptedBackend, run: Run
) -> None:
    params = "taN_m4_n3_k5_bias0_dev0"
    context.override("GemmTunableOp_Float32", params, SLOW)
    (item,) = client.get("results").json()["items"]
    assert client.delete(f"results/{item['id']}/override", headers=ANY).status_code == 204
    assert client.get("results").json()["total"] == 0
    run(4)
    assert client.get("results").json()["items"][0]["kernel"] == FAST


def test_a_healed_winner_has_a_history(
    client: httpx.Client, one: str, run: Run, context: TuningContext, backend: ScriptedBackend
) -> None:
    backend.unavailable[FAST] = "gone"
    context.plans.clear()
    run(4)
    assert [past["origin"] for past in client.get(one).json()["history"]] == ["measured here", "healed"]


def test_everything_is_forgotten_when_that_is_confirmed(client: httpx.Client, one: str, run: Run) -> None:
    run(5)
    assert client.delete("results", headers=ANY).status_code == 422
    assert client.delete("results", params={"confirm": "yes"}, headers=ANY).status_code == 422
    assert client.delete("results", params={"confirm": "all"}).status_code == 428
    assert client.delete("results", params={"confirm": "all"}, headers={"If-Match": '"x"'}).status_code == 412
    assert client.delete("results", params={"confirm": "all"}, headers=ANY).status_code == 204
    assert client.get("results").json()["total"] == 0
    assert client.get(one).status_code == 404


def test_one_winner_that_has_not_changed_is_not_sent_again(client: httpx.Client, one: str, run: Run) -> None:
    tag = client.get(one).headers["etag"]
    assert client.get(one, headers={"If-None-Match": tag}).status_code == 304
    run(5)
    assert client.get(one, headers={"If-None-Match": tag}).status_code == 200


def test_a_page_says_where_the_list_goes_on(client: httpx.Client, run: Run) -> None:
    for m in (1, 2, 3):
        run(m)
    url, seen = "results?sort=m&limit=1&m_min=1", []
    while url:
        answer = client.get(url)
        seen += [item["m"] for item in answer.json()["items"]]
        link: Any = answer.links.get("next")
        url = "results" + link["url"] if link else ""
    assert seen == [1, 2, 3]


def test_a_time_that_is_none_makes_no_number_that_is_none(client: httpx.Client, context: TuningContext) -> None:
    data = context.validators_of("0")
    text = "".join(f"Validator,{name},{value}\n" for name, value in data)
    line = f"GemmTunableOp_Float32,taN_m9_n3_k5_bias0_dev0,{FAST},{'0.' + '0' * 320 + '1'}\n"
    context.load_results("0", "x.csv", (text + line).encode())
    (item,) = client.get("results").json()["items"]
    assert (item["gain"], item["tflops"]) == (None, None)
