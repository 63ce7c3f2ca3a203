"""Switches, budgets and settings over REST."""

from typing import Any

import httpx
import pytest

from tensorplay.runtime.context import TuningContext


def test_a_switch_acts_at_once_and_its_origin_is_rest(client: httpx.Client, context: TuningContext) -> None:
    before = client.get("switches")
    assert before.json()["tuning"]["value"] is True
    assert before.json()["enabled"]["origin"] == "environment"
    changed = client.patch("switches", json={"tuning": False})
    assert changed.status_code == 200
    assert (changed.json()["tuning"]["value"], changed.json()["tuning"]["origin"]) == (False, "rest")
    assert not context.tuning_is_enabled()
    assert changed.headers["etag"] != before.headers["etag"]


def test_a_change_in_python_is_seen_over_rest(client: httpx.Client, context: TuningContext) -> None:
    tag = client.get("settings").headers["etag"]
    assert client.get("settings", headers={"If-None-Match": tag}).status_code == 304
    context.set_max_tuning_samples(7)
    seen = client.get("settings", headers={"If-None-Match": tag})
    assert {each["name"]: each["value"] for each in seen.json()["items"]}["max_tuning_samples"] == 7
    assert client.get("budgets").json()["max_tuning_samples"]["value"] == 7


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("switches", {"tuning": "yes"}),
        ("switches", {"unknown": True}),
        ("budgets", {"max_tuning_samples": -1}),
        ("budgets", {"max_tuning_samples": 1.5}),
        ("budgets", {"total_tuning_seconds": "nan"}),
        ("settings", {"values": {"min_gain": -1}}),
        ("settings", {"values": {"tuning": False, "min_gain": "x"}}),
        ("switches", {"tuning": False, "enabled": "x"}),
        ("budgets", {"max_tuning_samples": 7, "workspace_mib": -1}),
        ("settings", {"values": {"candidates": "<script>"}}),
        ("settings", {}),
    ],
)
def test_a_value_that_is_not_allowed_changes_nothing(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    before = client.get("settings").json()
    answer = client.patch(path, json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("settings").json() == before


@pytest.mark.parametrize("name", ["filename", "untuned_filename", "verbose_filename"])
def test_no_path_is_taken_from_a_client(client: httpx.Client, name: str) -> None:
    answer = client.put(f"settings/{name}", json={"value": "/etc/passwd"})
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:tensorplay:problem:locked"
    listed = {each["name"]: each for each in client.get("settings").json()["items"]}
    assert listed[name]["locked"]


def test_a_change_that_is_based_on_an_older_state_is_refused(client: httpx.Client, context: TuningContext) -> None:
    tag = client.get("switches").headers["etag"]
    context.set_max_tuning_samples(9)
    assert client.patch("switches", json={"tuning": False}, headers={"If-Match": tag}).status_code == 412
    assert context.tuning_is_enabled()


def test_a_setting_that_is_not_there_is_not_found(client: httpx.Client) -> None:
    assert client.put("settings/nothing", json={"value": 1}).status_code == 404


def test_of_a_file_only_the_name_is_shown(client: httpx.Client, context: TuningContext) -> None:
    context.change_setting("filename", "/home/somebody/secret place/winners.csv")
    context.change_setting("untuned_filename", "/srv/x/untuned.csv")
    values = {each["name"]: each["value"] for each in client.get("settings").json()["items"]}
    assert (values["filename"], values["untuned_filename"]) == ("winners.csv", "untuned.csv")
    for path in ("settings", "log", "files"):
        text = client.get(path).text
        assert "somebody" not in text
        assert "/srv" not in text
    page = client.get("../../settings", headers={"Accept": "text/html"}).text
    assert "winners.csv" in page
    assert "somebody" not in page


@pytest.mark.parametrize(
    ("name", "given", "default"),
    [("rotating_buffer_size", 7, None), ("min_gain", 0.5, 0.01), ("sources", ["numpy"], []), ("tuning", False, True)],
)
def test_null_is_the_default(client: httpx.Client, name: str, given: object, default: object) -> None:
    assert client.put(f"settings/{name}", json={"value": given}).json()["value"] == given
    changed = client.put(f"settings/{name}", json={"value": None}).json()
    assert (changed["value"], changed["origin"]) == (default, "rest")
    assert client.patch("settings", json={"values": {name: given}}).json()[name]["value"] == given
    assert client.patch("settings", json={"values": {name: None}}).json()[name]["value"] == default


def test_an_empty_text_is_no_name_and_so_all_sources(client: httpx.Client) -> None:
    client.put("settings/sources", json={"value": "numpy"})
    assert client.put("settings/sources", json={"value": ""}).json()["value"] == []


def test_what_was_changed_goes_back_to_the_environment_or_the_default(
    client: httpx.Client, context: TuningContext
) -> None:
    for name, value in (("enabled", False), ("min_gain", 0.5)):
        assert client.put(f"settings/{name}", json={"value": value}).json()["origin"] == "rest"
    tag = client.get("settings").headers["etag"]
    back = client.delete("settings/enabled")
    assert (back.status_code, back.json()["value"], back.json()["origin"]) == (200, True, "environment")
    assert context.is_enabled()
    assert back.headers["etag"] != tag
    found = client.delete("settings/min_gain", headers={"If-Match": back.headers["etag"]}).json()
    assert (found["value"], found["origin"]) == (0.01, "default")
    again = client.delete("settings/min_gain")
    assert (again.status_code, again.headers["etag"]) == (200, client.get("settings").headers["etag"])


def test_that_a_value_is_the_default_again_and_not_merely_the_same_is_seen(client: httpx.Client) -> None:
    for value in (0.5, 0.01):
        client.put("settings/min_gain", json={"value": value})
    tag = client.get("settings").headers["etag"]
    assert client.delete("settings/min_gain").json()["origin"] == "default"
    assert client.get("settings", headers={"If-None-Match": tag}).status_code == 200


def test_what_no_client_may_change_none_can_put_back(client: httpx.Client, stranger: httpx.Client) -> None:
    assert client.delete("settings/filename").status_code == 409
    assert client.delete("settings/nothing").status_code == 404
    assert client.delete("settings/min_gain", headers={"If-Match": '"old"'}).status_code == 412
    assert stranger.delete("settings/min_gain").status_code == 401
