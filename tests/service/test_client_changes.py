"""The clients steer winners, lists and files, and export what they list."""

import asyncio
import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tensorplay.database.csv_text import parse_results, parse_untuned
from tensorplay.runtime.context import TuningContext
from tensorplay.service import AsyncClient, Client, Service, ServiceError
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
OWN = "tunableop_results0.csv"
Run = Callable[[int], str]


@pytest.fixture
def caller(service: Service) -> Iterator[Client]:
    with Client(service.url, service.token) as made:
        yield made


def refused(call: Callable[..., object], *given: Any, **named: Any) -> tuple[int, str]:
    with pytest.raises(ServiceError) as caught:
        call(*given, **named)
    return caught.value.status, caught.value.code


def test_a_winner_is_pinned_and_unpinned(caller: Client, run: Run) -> None:
    run(4)
    page = caller.results_page()
    assert caller.pin(page.items[0].id, if_match=page.etag).pinned
    assert [each.pinned for each in caller.results(pinned=True)] == [True]
    assert refused(caller.unpin, page.items[0].id, if_match=page.etag) == (412, "changed")
    assert refused(caller.forget_all) == (409, "pinned")
    caller.unpin(page.items[0].id)
    caller.forget_all()
    assert caller.results_page().total == 0


def test_switches_devices_and_the_runtime_are_read_and_steered(
    caller: Client, run: Run, service: Service, context: TuningContext
) -> None:
    run(4)
    assert caller.set_switch("tuning", False).value is False
    assert refused(caller.set_switch, "nothing", True) == (404, "not-found")
    assert [(each.device, each.results) for each in caller.devices()] == [("0", 1)]
    assert caller.runtime().spent_tuning_seconds == round(context.spent_tuning_seconds(), 3)
    assert caller.budgets()["spent_tuning_seconds"].locked
    assert caller.reresolve() == 0

    async def play() -> list[Any]:
        async with AsyncClient(service.url, service.token) as client:
            changed = await client.set_switch("tuning", True)
            told = (await client.devices(), await client.runtime(), await client.reresolve())
            return [changed.value, *told]

    assert asyncio.run(play()) == [True, caller.devices(), caller.runtime(), 0]


def test_an_override_is_withdrawn_and_the_history_tells(caller: Client, run: Run) -> None:
    run(4)
    told = caller.override(caller.results_page().items[0].id, SLOW)
    caller.withdraw_override(told.id)
    assert [past.kernel for past in caller.result(told.id).history] == [FAST, SLOW, FAST]
    assert refused(caller.withdraw_override, told.id) == (409, "no-override")


def test_a_rejection_is_measured_anew_and_the_list_cleared(
    caller: Client, run: Run, context: TuningContext, backend: ScriptedBackend
) -> None:
    run(4)
    context.tuning_disable()
    backend.unavailable[FAST] = "gone"
    context.plans.clear()
    run(4)
    (met,) = caller.rejections()
    assert caller.rejection(met.id) == met
    assert caller.wait(caller.retune(met.id).id, timeout_s=30).state == "succeeded"
    assert caller.rejection(met.id).healed == FIRST
    caller.clear_rejections()
    assert caller.rejections() == []


def test_untuned_signatures_are_listed_page_by_page_and_dropped(
    caller: Client, run: Run, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.tuning_disable()
    for m in (1, 2, 3):
        run(m)
    page = "tensorplay.service.client.change_calls.untuned_page"
    from tensorplay.service.client import change_calls

    whole = change_calls.untuned_page
    monkeypatch.setattr(page, lambda cursor: _limited(whole(cursor)))
    assert len(caller.untuned()) == 3
    caller.forget_untuned(caller.untuned()[0].id)
    assert len(caller.untuned()) == 2
    caller.forget_all_untuned()
    assert caller.untuned() == []


def _limited(call: Any) -> Any:
    from dataclasses import replace

    return replace(call, query=call.query | {"limit": "1"})


def test_files_are_read_loaded_and_saved(caller: Client, run: Run) -> None:
    run(4)
    assert parse_results(caller.read_file(OWN)).entries
    made = caller.save_file("mine.csv")
    assert (made.winners, made.added) == (1, 1)
    assert refused(caller.save_file, "mine.csv") == (412, "exists")
    assert caller.save_file("mine.csv", if_match=made.etag).added == 0
    caller.forget_all()
    assert caller.load_file("mine.csv").merged == 1
    assert caller.load_file("mine.csv", overwrite=True, device="0").replaced == 0
    assert refused(caller.load_file, "../x") in {(404, "not-found"), (422, "invalid")}


def test_the_signatures_of_a_file_are_tuned_within_a_budget(caller: Client, run: Run) -> None:
    run(4)
    job = caller.wait(caller.tune(file=OWN, budget={"max_tuning_samples": 3}).id, timeout_s=30)
    assert (job.state, job.total, job.budget.max_tuning_samples) == ("succeeded", 1, 3)
    assert refused(caller.tune, [("op", "params")], file=OWN) == (422, "bad-source")


def test_everything_that_is_listed_is_exported(caller: Client, run: Run, context: TuningContext) -> None:
    run(4)
    run(5)
    context.tuning_disable()
    run(6)

    def exported(*given: Any, **filters: Any) -> bytes:
        file = io.BytesIO()
        assert caller.export(file, *given, **filters) == len(file.getvalue())
        return file.getvalue()

    assert [row["m"] for row in csv.DictReader(exported(m_min=5).decode().splitlines())] == ["5"]
    lines = exported("results.jsonl", sort_is_none=None).splitlines()
    assert {json.loads(line)["m"] for line in lines} == {4, 5}
    assert {entry.kernel for entry in parse_results(exported("results")).entries} == {FAST}
    assert exported("rejections.csv").startswith(b"id,")
    assert exported("untuned.csv").count(b"\r\n") == 2
    assert len(parse_untuned(exported("untuned")).signatures) == 1
    assert refused(caller.export, io.BytesIO(), m_min=-1) == (422, "invalid")


def test_an_export_from_nobody_is_one_error() -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("broken", request=request)

    with Client("http://127.0.0.1:1/", transport=httpx.MockTransport(broken)) as client:
        assert refused(client.export, io.BytesIO()) == (0, "unreachable")


def test_the_client_that_is_awaited_does_the_same(service: Service, run: Run) -> None:
    run(4)

    async def use() -> None:
        async with AsyncClient(service.url, service.token) as client:
            identity = (await client.results_page()).items[0].id
            assert (await client.pin(identity)).pinned
            await client.unpin(identity)
            await client.override(identity, SLOW)
            await client.withdraw_override(identity)
            made = await client.save_file("mine.csv")
            assert (await client.load_file(made.name)).kept == 0
            assert await client.read_file(made.name)
            assert await client.untuned() == []
            await client.forget_all_untuned()
            await client.clear_rejections()
            file = io.BytesIO()
            assert await client.export(file, "results.jsonl") == len(file.getvalue()) > 0
            job = await client.wait((await client.tune(file=OWN)).id, timeout_s=30)
            assert job.state == "succeeded"
            await client.forget_all()
            for call in (client.rejection("x"), client.retune("x"), client.forget_untuned("0" * 16)):
                with pytest.raises(ServiceError):
                    await call
            with pytest.raises(ServiceError):
                await client.export(io.BytesIO(), m_min=-1)

    asyncio.run(use())
