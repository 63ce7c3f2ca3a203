"""The clients: typed answers, one error, and nothing sent twice that must not be."""

import asyncio
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service import AsyncClient, Client, Service, ServiceError
from tensorplay.service.client.event import EventReader
from tensorplay.testing import scripted_kernel

OP = "GemmTunableOp_Float32"


@pytest.fixture
def caller(service: Service) -> Iterator[Client]:
    with Client(service.url, service.token) as made:
        yield made


def answering(*statuses: int, headers: dict[str, str] | None = None) -> tuple[list[httpx.Request], httpx.MockTransport]:
    """Return the requests that will have come, and what answers them in turn; 0 is a connection that breaks."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        status = statuses[min(len(seen), len(statuses)) - 1]
        if not status:
            raise httpx.ReadError("broken", request=request)
        return httpx.Response(status, json={"a": 1}, headers=headers or {})

    return seen, httpx.MockTransport(answer)


def test_every_page_of_the_results_is_read(caller: Client, run: Callable[[int], str]) -> None:
    params = [run(m) for m in range(1, 8)]
    found = list(caller.results(sort="-m", page=3))
    assert [each.m for each in found] == [7, 6, 5, 4, 3, 2, 1]
    assert {each.params for each in found} == set(params)
    assert [each.m for each in caller.results(m_min=6, transposed=False)] == [6, 7]
    assert list(caller.results(bias=True)) == []
    for limit in (0, 1, 3, 5, 7, 9):
        assert [each.m for each in caller.results(sort="-m", page=3, limit=limit)] == [7, 6, 5, 4, 3, 2, 1][:limit]
    with pytest.raises(ValueError, match="limit is -1; allowed: None for all"):
        list(caller.results(limit=-1))
    filters: Any = {"cursor": "x"}
    with pytest.raises(TypeError, match="results_page"):
        list(caller.results(**filters))


def test_a_winner_is_explained_overridden_and_forgotten(caller: Client, run: Callable[[int], str]) -> None:
    run(4)
    page = caller.results_page()
    told = caller.result(page.items[0].id)
    assert told.verdict is not None
    assert told.candidates
    changed = caller.override(told.id, scripted_kernel(3), if_match=page.etag)
    assert (changed.kernel, changed.origin) == (scripted_kernel(3), "override")
    with pytest.raises(ServiceError) as caught:
        caller.forget(told.id, if_match=page.etag)
    assert (caught.value.status, caught.value.code) == (412, "changed")
    caller.forget(told.id)
    assert caller.results_page().total == 0


def test_switches_budgets_and_settings_are_changed(caller: Client) -> None:
    assert caller.set_switches(tuning=False)["tuning"].value is False
    assert caller.switches()["enabled"].value is True
    assert caller.set_budgets(max_tuning_samples=7)["max_tuning_samples"].origin == "rest"
    assert caller.budgets()["max_tuning_samples"].value == 7
    assert caller.set("min_gain", 0.25).value == 0.25
    assert {each.name: each.value for each in caller.settings()}["min_gain"] == 0.25
    assert (caller.set("min_gain", None).value, caller.reset("min_gain").origin) == (0.01, "default")
    with pytest.raises(ServiceError, match="min_gain was given") as caught:
        caller.set("min_gain", -1)
    assert caught.value.status == 422
    with pytest.raises(ServiceError) as locked:
        caller.set("dashboard", "0.0.0.0:1")
    assert locked.value.code == "locked"


def test_a_job_is_started_awaited_and_forgotten(caller: Client, run: Callable[[int], str]) -> None:
    caller.set_switches(tuning=False)
    params = run(4)
    assert [(each.params, each.calls) for each in caller.untuned()] == [(params, 1)]
    job = caller.wait(caller.tune(key="once").id, timeout_s=30)
    assert (job.state, job.done, job.failures) == ("succeeded", 1, [])
    assert [each.id for each in caller.jobs()] == [job.id]
    assert caller.cancel(job.id).state == "succeeded"
    again = caller.wait(caller.tune([(OP, params)], again=True).id, timeout_s=30)
    assert (again.id != job.id, again.kind, again.skipped) == (True, "retune", 0)
    caller.forget_job(job.id)
    assert caller.job(again.id).done == 1


def test_what_the_runtime_met_is_read(caller: Client, run: Callable[[int], str]) -> None:
    run(4)
    assert caller.is_alive()
    assert caller.is_ready()
    assert caller.instance().pid == os.getpid()
    assert sum(caller.stats().values()) == 1
    assert caller.rejections() == []
    assert [(each.device, each.kind) for each in caller.files()] == [("0", "results"), (None, "explanations")]
    assert caller.save_files() is True
    assert caller.validators()["0"]
    assert "tuned" in {each.kind for each in caller.log()}


def test_events_are_told_until_the_service_stops(service: Service, caller: Client) -> None:
    kinds = []
    for event in caller.events(["settings"]):
        kinds.append(event.kind)
        if event.kind == "hello":
            caller.set("min_gain", 0.5)
        if event.kind == "settings":
            stopping = threading.Thread(target=service.stop)
            stopping.start()
    stopping.join()
    assert kinds == ["hello", "settings", "bye"]
    assert not caller.is_alive()


def test_a_stream_goes_on_where_it_broke() -> None:
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Last-Event-ID"))
        kind = "bye" if len(seen) == 3 else "log"
        return httpx.Response(200, text=f"id: a-{len(seen)}\nevent: {kind}\ndata: {{}}\n\n")

    with Client("http://127.0.0.1:1/", transport=httpx.MockTransport(answer)) as client:
        assert [event.id for event in client.events(last_id="a-0")] == ["a-1", "a-2", "a-3"]
    assert seen == ["a-0", "a-1", "a-2"]


@pytest.mark.parametrize("status", [0, 200, 429])
def test_a_stream_that_never_works_is_given_up(status: int) -> None:
    seen, transport = answering(status)
    with Client("http://127.0.0.1:1/", retries=1, transport=transport) as client, pytest.raises(ServiceError):
        list(client.events())
    assert len(seen) <= 2


def test_a_request_without_the_token_says_what_to_do(service: Service) -> None:
    with Client(service.url) as stranger, pytest.raises(ServiceError, match="send the token") as caught:
        stranger.set_switches(enabled=False)
    assert (caught.value.status, caught.value.code) == (401, "token-needed")


def test_only_what_may_be_done_twice_is_sent_again() -> None:
    seen, transport = answering(0)
    with Client("http://127.0.0.1:1/", "t", retries=1, transport=transport) as client:
        calls: list[tuple[Callable[[], object], int]] = [
            (client.stats, 2),
            (lambda: client.set("min_gain", 0.1), 2),
            (client.tune, 2),
            (lambda: client.override("0" * 16, "Default"), 1),
            (lambda: client.forget("0" * 16), 1),
            (lambda: client.forget_job("x"), 1),
        ]
        for call, times in calls:
            seen.clear()
            with pytest.raises(ServiceError, match=r"cannot be reached at .*: broken") as caught:
                call()
            assert (caught.value.status, caught.value.code, len(seen)) == (0, "unreachable", times)
            assert len({request.headers.get("Idempotency-Key") for request in seen}) == 1


def test_what_was_refused_as_one_too_many_is_sent_again_but_not_after_a_long_wait() -> None:
    seen, transport = answering(429, 200, headers={"Retry-After": "0"})
    with Client("http://127.0.0.1:1/", transport=transport) as client:
        client.forget("0" * 16)
    assert len(seen) == 2
    seen, transport = answering(429, headers={"Retry-After": "60"})
    with Client("http://127.0.0.1:1/", transport=transport) as client, pytest.raises(ServiceError) as caught:
        client.forget("0" * 16)
    assert (len(seen), caught.value.status) == (1, 429)


def test_answers_of_something_else_are_one_error_too() -> None:
    _, transport = answering(200)
    with Client("http://127.0.0.1:1/", transport=transport) as client, pytest.raises(ServiceError) as caught:
        client.settings()
    assert caught.value.code == "bad-answer"
    _, transport = answering(502)
    with Client("http://127.0.0.1:1/", transport=transport) as client, pytest.raises(ServiceError) as caught:
        client.settings()
    assert (caught.value.status, caught.value.code) == (502, "http")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (copy.status, copy.code, copy.detail) == (502, "http", caught.value.detail)


def test_a_wait_in_vain_ends(caller: Client, service: Service) -> None:
    running = {"id": "a", "state": "running", "done": 1, "total": 2, "current": None, "elapsed_s": 1.0, "eta_s": None}
    running |= {"failures": [], "created_at": ""}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=running))
    with Client("http://127.0.0.1:1/", transport=transport) as client, pytest.raises(ServiceError) as caught:
        client.wait("a", timeout_s=0.0)
    assert (caught.value.code, caught.value.detail) == ("timeout", "the job has done 1 of 2 after 0 s")


@pytest.mark.parametrize("url", ["", "127.0.0.1:8787", "file:///etc", "http://", "http://a/?b"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is no address of a service"):
        Client(url)


def test_ids_cannot_leave_their_place_in_the_address() -> None:
    seen, transport = answering(404)
    with Client("http://127.0.0.1:1/p", transport=transport) as client, pytest.raises(ServiceError):
        client.result("../../x?y")
    assert seen[0].url.raw_path == b"/p/api/v1/results/..%2F..%2Fx%3Fy"


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert methods(Client) == methods(AsyncClient)


def test_the_client_that_is_awaited_does_the_same(service: Service, run: Callable[[int], str]) -> None:
    for m in range(1, 6):
        run(m)

    async def use() -> None:
        async with AsyncClient(service.url, service.token) as client:
            assert await client.is_ready()
            assert [each.m async for each in client.results(sort="m", page=2)] == [1, 2, 3, 4, 5]
            assert [each.m async for each in client.results(sort="m", page=2, limit=3)] == [1, 2, 3]
            assert (await client.reset("min_gain")).origin == "default"
            first = (await client.results_page(limit=1)).items[0]
            assert (await client.result(first.id)).id == first.id
            assert (await client.set_switches(tuning=False))["tuning"].value is False
            job = await client.wait((await client.tune([(first.op, first.params)])).id, timeout_s=30)
            assert (job.state, job.skipped) == ("succeeded", 1)
            job = await client.wait((await client.tune([(first.op, first.params)], again=True)).id, timeout_s=30)
            assert (job.state, job.kind, job.skipped) == ("succeeded", "retune", 0)
            async for event in client.events(["settings"]):
                if event.kind == "settings":
                    break
                await client.set("min_gain", 0.5)
            with pytest.raises(ServiceError):
                await client.result("0" * 16)

    asyncio.run(use())


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))))
def test_no_stream_breaks_the_reader(lines: list[str]) -> None:
    reader = EventReader()
    for line in [*lines, ""]:
        event = reader.feed(line)
        assert event is None or isinstance(event.data, dict)
    for line in ("id: a-1", "event: log", ": nothing new", 'data: {"a":', "data: 1}"):
        assert reader.feed(line) is None
    assert reader.feed("") == ("a-1", "log", {"a": 1})


def test_a_refusal_says_where_the_request_does_not_fit(service: Service) -> None:
    with Client(service.url, service.token) as client, pytest.raises(ServiceError) as caught:
        client.results_page(limit=0)
    assert "query.limit: " in str(caught.value)
    assert caught.value.document["errors"]
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (str(again), again.document) == (str(caught.value), caught.value.document)


@pytest.mark.parametrize("document", [{"errors": 5}, {"errors": [5, {"loc": 5}, {}]}, {"errors": {"loc": []}}])
def test_a_foreign_problem_document_is_an_error_all_the_same(document: dict[str, object]) -> None:
    assert str(ServiceError(422, "invalid", "no", document)) == "no (invalid, HTTP 422)"
