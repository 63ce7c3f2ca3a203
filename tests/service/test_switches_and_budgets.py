"""Switches and budgets by merge patch and one by one: what changes, what does not, and what is refused."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service

PATCH = {"Content-Type": "application/merge-patch+json"}


def revision(client: httpx.Client) -> int:
    found: int = client.get("settings").json()["revision"]
    return found


def test_one_switch_is_put(client: httpx.Client, context: TuningContext) -> None:
    answer = client.put("switches/tuning", json={"value": False})
    assert (answer.status_code, answer.json()["value"], answer.json()["origin"]) == (200, False, "rest")
    assert answer.headers["etag"] == client.get("switches").headers["etag"]
    assert not context.tuning_is_enabled()


@pytest.mark.parametrize("path", ["switches/tuning", "settings/tuning", "switches", "settings"])
def test_the_same_value_changes_nothing(client: httpx.Client, context: TuningContext, path: str) -> None:
    before, plans, state = revision(client), context.plans, client.get("switches").json()
    if "/" in path:
        answer = client.put(path, json={"value": True})
    else:
        body: dict[str, Any] = {"tuning": True, "enabled": True}
        answer = client.patch(path, json=body if path == "switches" else {"values": body})
    assert answer.status_code == 200
    assert revision(client) == before
    assert context.plans is plans
    assert client.get("switches").json() == state


@pytest.mark.parametrize("name", ["nothing", "max_tuning_samples", "filename", "a%2fb"])
def test_what_is_no_switch_is_not_found(client: httpx.Client, name: str) -> None:
    answer = client.put(f"switches/{name}", json={"value": True})
    assert answer.status_code == 404


@pytest.mark.parametrize("body", [{"value": 1}, {"value": "true"}, {"value": None}, {}, {"value": True, "more": 1}, []])
def test_a_switch_is_on_or_off_and_nothing_else(client: httpx.Client, body: Any) -> None:
    before = revision(client)
    assert client.put("switches/tuning", json=body).status_code == 422
    assert revision(client) == before


def test_a_switch_that_changed_meanwhile_stays(client: httpx.Client, context: TuningContext) -> None:
    tag = client.get("switches").headers["etag"]
    assert client.get("switches", headers={"If-None-Match": tag}).status_code == 304
    context.set_max_tuning_samples(3)
    assert client.get("switches", headers={"If-None-Match": tag}).status_code == 200
    changed = client.put("switches/tuning", json={"value": False}, headers={"If-Match": tag})
    assert (changed.status_code, changed.json()["type"]) == (412, "urn:tensorplay:problem:changed")
    assert client.put("switches/tuning", json={"value": False}, headers={"If-Match": "*"}).status_code == 200


def test_a_locked_switch_is_said_to_be(serve: Callable[..., Service]) -> None:
    service = serve(read_only=True)
    with httpx.Client(base_url=service.url + "api/v1/", headers={"Authorization": f"Bearer {service.token}"}) as client:
        assert all(each["locked"] for each in client.get("switches").json().values())
        assert client.put("switches/tuning", json={"value": False}).status_code == 403


def test_a_merge_patch_leaves_alone_what_it_does_not_name_and_null_is_the_default(
    client: httpx.Client, context: TuningContext
) -> None:
    client.patch("budgets", json={"max_tuning_samples": 7, "max_tuning_duration_ms": 9})
    answer = client.patch("budgets", content='{"max_tuning_samples": null}', headers=PATCH)
    assert answer.status_code == 200
    values = {name: each["value"] for name, each in answer.json().items()}
    assert (values["max_tuning_samples"], values["max_tuning_duration_ms"]) == (100, 9)
    context.change_setting("enabled", True)
    assert client.patch("switches", content='{"enabled": null}', headers=PATCH).json()["enabled"]["value"] is False


def test_of_several_values_all_are_allowed_or_none_is_set(client: httpx.Client) -> None:
    before = client.get("settings").json()
    answer = client.patch("settings", json={"values": {"max_tuning_samples": 7, "min_gain": -1}})
    assert answer.status_code == 422
    assert client.get("settings").json() == before


def test_what_is_spent_is_told_and_not_set(
    client: httpx.Client, run: Callable[[int], str], context: TuningContext
) -> None:
    spent = client.get("budgets").json()["spent_tuning_seconds"]
    assert (spent["value"], spent["locked"], spent["origin"]) == (0.0, True, "counted")
    run(4)
    assert context.spent_tuning_seconds() > 0
    assert client.get("budgets").json()["spent_tuning_seconds"]["value"] == round(context.spent_tuning_seconds(), 3)
    assert client.patch("budgets", json={"spent_tuning_seconds": 0}).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"workspace_mib": -1}, {"workspace_mib": 2**20 + 1}, {"max_tuning_samples": 2**31},
        {"max_tuning_duration_ms": True}, {"total_tuning_seconds": -0.5}, {"total_seconds": 1},
    ],
)  # fmt: skip
def test_a_budget_beyond_its_cap_is_refused_and_never_cut(client: httpx.Client, body: dict[str, Any]) -> None:
    before = client.get("budgets").json()
    assert client.patch("budgets", json=body).status_code == 422
    assert client.get("budgets").json() == before
