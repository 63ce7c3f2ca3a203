"""Settings that a client changes while a job, or the program, holds others for a while."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.service.live_runtime import LiveRuntime, Tuned

OP, PARAMS = "GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev0"
NAME = "max_tuning_samples"


@pytest.fixture
def goes_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Lets the measurements of jobs end."""
    event = threading.Event()

    def tune(self: LiveRuntime, signature: Signature, *, again: bool = False) -> Tuned:
        del self, signature, again
        event.wait(20)
        return Tuned(None, is_skipped=False)

    monkeypatch.setattr(LiveRuntime, "tune", tune)
    yield event
    event.set()


@pytest.fixture
def end_job(client: httpx.Client, context: TuningContext, goes_on: threading.Event) -> Callable[[], None]:
    """Starts a job with 20 samples of its own, and returns what lets it end."""
    asked: dict[str, Any] = {"source": {"signatures": [{"op": OP, "params": PARAMS}]}, "budget": {NAME: 20}}
    job = client.post("jobs", json=asked).json()["id"]
    while client.get(f"jobs/{job}").json()["current"] is None:
        pass
    assert _now(client) == (20, "api")

    def end() -> None:
        goes_on.set()
        assert client.get(f"jobs/{job}", params={"wait": 20}).json()["state"] == "succeeded"

    return end


def _now(client: httpx.Client) -> tuple[int, str]:
    found = client.get("budgets").json()[NAME]
    return found["value"], found["origin"]


@pytest.mark.parametrize("value", [7, 20, 100])
def test_a_budget_that_is_changed_while_a_job_runs_stays(
    client: httpx.Client, end_job: Callable[[], None], value: int
) -> None:
    answer = client.patch("budgets", json={NAME: value})
    assert (answer.status_code, answer.json()[NAME]["value"]) == (200, value)
    end_job()
    assert _now(client) == (value, "rest" if value != 100 else "default")


def test_a_setting_that_is_reset_while_a_job_runs_is_reset(
    client: httpx.Client, context: TuningContext, end_job: Callable[[], None]
) -> None:
    client.put(f"settings/{NAME}", json={"value": 7})
    assert client.delete(f"settings/{NAME}").json()["value"] == 100
    end_job()
    assert _now(client) == (100, "default")


def test_a_budget_that_nobody_changes_comes_back_after_the_job(
    client: httpx.Client, end_job: Callable[[], None]
) -> None:
    end_job()
    assert _now(client) == (100, "default")


def test_a_client_changes_what_holds_behind_a_scope_of_the_program(
    client: httpx.Client, context: TuningContext, service: Service
) -> None:
    with context.configure(**{NAME: 20}), context.configure(**{NAME: 30}):
        client.put(f"settings/{NAME}", json={"value": 7})
        assert _now(client) == (7, "rest")
    assert _now(client) == (7, "rest")
    with context.configure(**{NAME: 20}):
        context.change_setting(NAME, 9)
    assert _now(client) == (7, "rest")
