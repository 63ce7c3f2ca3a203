"""Tuning jobs over REST."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.gemm import Signature, parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service.live_runtime import LiveRuntime
from tensorplay.testing import ScriptedBackend

OP = "GemmTunableOp_Float32"
Run = Callable[[int], str]


def source(*sizes: int) -> dict[str, Any]:
    return {"source": {"signatures": [{"op": OP, "params": f"taN_m{m}_n3_k5_bias0_dev0"} for m in sizes]}}


def test_untuned_signatures_are_tuned_on_demand_even_with_tuning_off(
    client: httpx.Client, context: TuningContext, run: Run
) -> None:
    context.tuning_disable()
    params = {run(m) for m in (4, 8)}
    assert {each["params"] for each in client.get("untuned").json()["items"]} == params
    started = client.post("jobs", json={"source": {"untuned": True}})
    assert started.status_code == 202
    assert started.headers["location"] == f"jobs/{started.json()['id']}"
    job = client.get(f"jobs/{started.json()['id']}", params={"wait": 10}).json()
    assert (job["state"], job["done"], job["total"], job["failures"]) == ("succeeded", 2, 2, [])
    assert {row[1] for row in context.get_results()} == params
    assert client.get("jobs").json()["total"] == 1
    assert client.delete(f"jobs/{job['id']}").status_code == 204


def test_a_job_measures_for_later_while_the_feature_is_off(
    client: httpx.Client, context: TuningContext, run: Run
) -> None:
    context.change_setting("enabled", False)
    started = client.post("jobs", json=source(4))
    assert started.status_code == 202
    job = client.get(f"jobs/{started.json()['id']}", params={"wait": 10}).json()
    assert (job["state"], job["failures"]) == ("succeeded", [])
    context.change_setting("enabled", True)
    assert context.calls_of(OP, run(4)) == {"replayed": 1}


def test_measuring_again_takes_no_decided_winner_away_without_deciding_anything(
    client: httpx.Client, context: TuningContext
) -> None:
    def ended(**further: Any) -> Any:
        started = client.post("jobs", json=source(4) | further).json()["id"]
        return client.get(f"jobs/{started}", params={"wait": 10}).json()

    assert ended()["state"] == "succeeded"
    (before,) = context.get_results()
    again = ended(kind="retune", budget={"max_tuning_samples": 2})
    assert (again["state"], again["failed"]) == ("failed", 1)
    assert again["failures"][0]["reason"] == "the earlier winner stays, nothing was decided now: insufficient budget"
    assert context.get_results() == [before]
    assert ended(kind="retune")["state"] == "succeeded"


def test_the_same_key_starts_no_second_job(client: httpx.Client) -> None:
    headers = {"Idempotency-Key": "mine"}
    first, again = (client.post("jobs", json=source(4), headers=headers).json()["id"] for _ in range(2))
    assert first == again
    assert client.post("jobs", json=source(8), headers=headers).status_code == 422


def test_one_job_runs_at_a_time_and_can_be_cancelled(
    client: httpx.Client, backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = backend.open_trial

    def slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.2)
        return opened(*arguments, **options)

    monkeypatch.setattr(backend, "open_trial", slowly)
    job = client.post("jobs", json=source(*range(10, 40))).json()["id"]
    refused = client.post("jobs", json=source(4))
    assert (refused.status_code, refused.json()["job"]) == (409, job)
    assert client.delete(f"jobs/{job}").status_code == 409
    assert client.post(f"jobs/{job}/cancel").status_code == 202
    ended = client.get(f"jobs/{job}", params={"wait": 10}).json()
    assert ended["state"] == "cancelled"
    assert ended["done"] < 30
    assert client.post(f"jobs/{job}/cancel").status_code == 200


def test_what_cannot_be_measured_is_said_with_its_reason(client: httpx.Client, backend: ScriptedBackend) -> None:
    backend.trial_error = MemoryError("no room")
    job = client.post("jobs", json=source(4)).json()["id"]
    ended = client.get(f"jobs/{job}", params={"wait": 10}).json()
    assert ended["state"] == "failed"
    assert "no room" in ended["failures"][0]["reason"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"source": {}},
        {"source": {"untuned": True, "signatures": []}},
        {"source": {"untuned": False}},
        {"source": {"signatures": [{"op": "x", "params": "y"}]}},
        {"source": {"signatures": []}},
        {"source": {"file": "/etc/passwd"}},
        {"kind": "other", "source": {"untuned": True}},
    ],
)
def test_a_job_that_is_none_is_not_started(client: httpx.Client, body: dict[str, Any]) -> None:
    assert client.post("jobs", json=body).status_code == 422
    assert client.get("jobs").json()["total"] == 0


def test_a_job_that_is_not_there_is_not_found(client: httpx.Client) -> None:
    for answer in (client.get("jobs/x"), client.post("jobs/x/cancel"), client.delete("jobs/x")):
        assert answer.status_code == 404


def test_the_signatures_of_a_file_are_tuned(client: httpx.Client, run: Run, tmp_path: Path) -> None:
    run(4)
    names = "".join(f"{OP},taN_m{m}_n3_k5_bias0_dev0\n" for m in (8, 9))
    (tmp_path / "wanted.csv").write_text(names + "nonsense\n")
    job = client.post("jobs", json={"source": {"file": "wanted.csv"}}).json()
    ended = client.get(f"jobs/{job['id']}", params={"wait": 10}).json()
    assert (ended["state"], ended["done"]) == ("succeeded", 2)
    assert {item["m"] for item in client.get("results").json()["items"]} == {4, 8, 9}
    own = client.post("jobs", json={"source": {"file": "tunableop_results0.csv"}})
    assert own.json()["total"] == 3
    assert client.post("jobs", json={"source": {"file": "none.csv"}}).status_code in {404, 409}
    assert client.post("jobs", json={"source": {"file": "../wanted.csv"}}).status_code == 422


def test_a_budget_holds_while_the_job_runs(
    client: httpx.Client, backend: ScriptedBackend, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, opened = [], backend.open_trial

    def slowly(*arguments: Any, **options: Any) -> Any:
        seen.append(context.get_max_tuning_samples())
        time.sleep(0.15)
        return opened(*arguments, **options)

    monkeypatch.setattr(backend, "open_trial", slowly)
    budget = {"total_seconds": 0.2, "max_tuning_samples": 7}
    job = client.post("jobs", json=source(*range(10, 30)) | {"budget": budget}).json()
    assert job["budget"] == {"total_seconds": 0.2, "max_tuning_samples": 7, "max_tuning_duration_ms": None}
    ended = client.get(f"jobs/{job['id']}", params={"wait": 10}).json()
    assert (ended["state"], ended["reason"]) == ("cancelled", "the 0.2 s of its budget are spent")
    assert 0 < ended["done"] < 20
    assert set(seen) == {7}
    assert context.get_max_tuning_samples() == 100
    for wrong in ({"total_seconds": -1}, {"total_seconds": True}, {"max_tuning_samples": 1.5}, {"more": 1}):
        assert client.post("jobs", json=source(4) | {"budget": wrong}).status_code == 422


def test_a_request_that_is_sent_again_after_its_job_ended_starts_no_other(
    client: httpx.Client, context: TuningContext, run: Run
) -> None:
    context.tuning_disable()
    run(4)
    headers = {"Idempotency-Key": "mine"}
    first = client.post("jobs", json={"source": {"untuned": True}}, headers=headers).json()
    client.get(f"jobs/{first['id']}", params={"wait": 10})
    again = client.post("jobs", json={"source": {"untuned": True}}, headers=headers)
    assert (again.status_code, again.json()["id"]) == (202, first["id"])


def test_a_job_that_has_not_changed_is_not_sent_again(client: httpx.Client) -> None:
    job = client.post("jobs", json=source(4)).json()["id"]
    ended = client.get(f"jobs/{job}", params={"wait": 10})
    assert client.get(f"jobs/{job}", headers={"If-None-Match": ended.headers["etag"]}).status_code == 304
    tag = client.get("jobs").headers["etag"]
    assert client.get("jobs", headers={"If-None-Match": tag}).status_code == 304
    client.delete(f"jobs/{job}")
    assert client.get("jobs", headers={"If-None-Match": tag}).status_code == 200


def test_what_has_a_winner_is_skipped_and_said_to_be_unless_it_is_measured_again(
    client: httpx.Client, context: TuningContext, run: Run, tmp_path: Path
) -> None:
    run(4)

    def ended(**wanted: Any) -> dict[str, Any]:
        job = client.post("jobs", json=source(4, 8) | wanted).json()
        found: dict[str, Any] = client.get(f"jobs/{job['id']}", params={"wait": 10}).json()
        return found

    first = ended()
    assert (first["state"], first["done"], first["skipped"], first["failures"]) == ("succeeded", 2, 1, [])
    assert ended()["skipped"] == 2
    assert context.stats()["measured"] == 2
    again = ended(kind="retune")
    assert (again["kind"], again["state"], again["done"], again["skipped"]) == ("retune", "succeeded", 2, 0)
    assert context.stats()["measured"] == 4


def test_a_winner_that_only_its_file_knows_is_skipped_too(tmp_path: Path, backend: ScriptedBackend) -> None:
    path = tmp_path / "tunableop_results0.csv"
    with closing(TuningContext(environ={}, directory=tmp_path, backends={"0": backend})) as context:
        context.tune(parse_signature(OP, "taN_m4_n3_k5_bias0_dev0"))
        context.write_file()
    assert path.exists()
    with closing(TuningContext(environ={}, directory=tmp_path, backends={"0": backend})) as context:
        found = LiveRuntime(context).tune(Signature(OP, "taN_m4_n3_k5_bias0_dev0"))
        assert (found.is_skipped, found.not_measured, context.stats()["measured"]) == (True, None, 0)
