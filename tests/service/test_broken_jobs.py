"""Jobs in which something fails: each ends, says why, and keeps no other from being started."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tensorplay.errors import TensorPlayError
from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service.jobs import OVER, Job, Jobs
from tensorplay.service.live_runtime import LiveRuntime, Tuned
from tensorplay.testing import ScriptedBackend, scripted_kernel

OP, PARAMS = "GemmTunableOp_Float32", "taN_m{}_n3_k5_bias0_dev0"
FIRST, FAST = scripted_kernel(1), scripted_kernel(2)


class FailingRuntime(LiveRuntime):
    """A runtime whose measurements end as it is told."""

    outcome: Exception | Tuned = Tuned("cannot", is_skipped=False)

    def tune(self, signature: Signature, *, again: bool = False) -> Tuned:
        """Return or raise the outcome."""
        del signature, again
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def runtime(context: TuningContext) -> Iterator[FailingRuntime]:
    made = FailingRuntime(context)
    yield made
    made.close()


def signatures(count: int) -> list[Signature]:
    return [Signature(OP, PARAMS.format(m)) for m in range(1, count + 1)]


def ended(job: Job) -> Job:
    until = time.monotonic() + 30
    while job.state not in OVER and time.monotonic() < until:
        time.sleep(0.01)
    return job


@pytest.mark.parametrize("count", [1, 100, 101, 150])
def test_a_job_has_failed_when_nothing_could_be_measured_however_much_that_is(
    runtime: FailingRuntime, count: int
) -> None:
    job = ended(Jobs(runtime).start(signatures(count)))
    assert (job.state, job.done, job.failed, len(job.failures)) == ("failed", count, count, min(count, 100))


def test_a_job_of_which_something_was_measured_has_succeeded_and_says_how_much_was_not(
    runtime: FailingRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_but_one(signature: Signature, *, again: bool = False) -> Tuned:
        del again
        return Tuned(None if signature.params == PARAMS.format(7) else "cannot", is_skipped=False)

    monkeypatch.setattr(runtime, "tune", all_but_one)
    job = ended(Jobs(runtime).start(signatures(120)))
    assert (job.state, job.done, job.failed, len(job.failures)) == ("succeeded", 120, 119, 100)


@pytest.mark.parametrize("error", [OSError(5, "bad", "/home/me/secret/x.csv"), MemoryError(), ZeroDivisionError("x")])
def test_whatever_is_raised_ends_the_job_and_the_next_one_runs(
    runtime: FailingRuntime, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    jobs, runtime.outcome = Jobs(runtime), error
    with caplog.at_level(logging.ERROR, logger="tensorplay"):
        job = ended(jobs.start(signatures(3)))
    assert (job.state, job.done, job.current, jobs.running()) == ("failed", 0, None, None)
    assert job.ended is not None
    assert job.reason is not None
    assert PARAMS.format(1) in job.reason
    assert type(error).__name__ in job.reason
    assert "secret/" not in job.reason
    (record,) = caplog.records
    assert job.id in record.getMessage()
    assert record.exc_info is not None
    runtime.outcome = Tuned(None, is_skipped=False)
    assert ended(jobs.start(signatures(3))).state == "succeeded"
    jobs.forget(job.id)


def test_what_keeps_its_budget_from_being_set_ends_the_job(
    runtime: FailingRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> Any:
        raise TensorPlayError("no such budget")

    monkeypatch.setattr(runtime.context, "configure", refuse)
    job = ended(Jobs(runtime).start(signatures(2), budget={"max_tuning_samples": 3}))
    assert job.state == "failed"
    assert "no such budget" in str(job.reason)


def test_a_job_whose_thread_cannot_be_started_has_failed_and_the_next_one_runs(
    runtime: FailingRuntime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    jobs = Jobs(runtime)
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, logger="tensorplay"):
        patched.setattr(threading.Thread, "start", fail)
        job = jobs.start(signatures(2))
    assert (job.state, job.done, jobs.running()) == ("failed", 0, None)
    assert "can't start new thread" in str(job.reason)
    assert len(caplog.records) == 1
    runtime.outcome = Tuned(None, is_skipped=False)
    assert ended(jobs.start(signatures(2))).state == "succeeded"


def test_a_client_is_told_of_a_job_that_broke_off(
    client: httpx.Client, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise OSError("the disk is gone")

    body = {"source": {"signatures": [{"op": OP, "params": PARAMS.format(4)}]}}
    with monkeypatch.context() as patched:
        patched.setattr(context, "measure_beside", fail)
        job = client.post("jobs", json=body).json()
        found = client.get(f"jobs/{job['id']}", params={"wait": 10}).json()
    assert (found["state"], found["done"], found["failed"], found["current"]) == ("failed", 0, 0, None)
    assert "the disk is gone" in found["reason"]
    assert client.post("jobs", json=body).status_code == 202
    assert client.delete(f"jobs/{job['id']}").status_code == 204


@pytest.mark.parametrize("is_pinned", [False, True])
def test_a_winner_that_does_not_run_any_more_is_replaced_unless_it_is_pinned(
    *, client: httpx.Client, context: TuningContext, backend: ScriptedBackend,
    run: Callable[[int], str], is_pinned: bool,
) -> None:  # fmt: skip
    params = run(4)
    assert context.get_results()[0][2] == FAST
    backend.unavailable[FAST] = "the library has it no more"
    if is_pinned:
        context.pin_winner(OP, params)
    job = client.post("jobs", json={"source": {"signatures": [{"op": OP, "params": params}]}}).json()
    found = client.get(f"jobs/{job['id']}", params={"wait": 10}).json()
    assert (found["done"], found["skipped"]) == (1, 0)
    if is_pinned:
        assert (found["state"], found["failed"]) == ("failed", 1)
        assert "pinned" in found["failures"][0]["reason"]
        assert context.get_results()[0][2] == FAST
    else:
        assert (found["state"], found["failed"]) == ("succeeded", 0)
        assert context.get_results()[0][2] == FIRST


def test_a_winner_that_does_not_run_any_more_and_cannot_be_replaced_is_no_skipped_one(
    client: httpx.Client, backend: ScriptedBackend, run: Callable[[int], str]
) -> None:
    params = run(4)
    backend.unavailable[FAST] = "the library has it no more"
    backend.trial_error = MemoryError("no room")
    job = client.post("jobs", json={"source": {"signatures": [{"op": OP, "params": params}]}}).json()
    found = client.get(f"jobs/{job['id']}", params={"wait": 10}).json()
    assert (found["state"], found["skipped"], found["failed"]) == ("failed", 0, 1)
    assert "no room" in found["failures"][0]["reason"]
