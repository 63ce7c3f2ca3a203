"""Who is told what, when much happens at once."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from itertools import islice
from typing import NamedTuple

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorplay.runtime import listeners as events
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.service.hub import Hub
from tensorplay.service.live_runtime import LiveRuntime

ALL = (events.SETTING, events.TUNED, events.UNTUNED, events.FILE, events.QUEUED)


class Told(NamedTuple):
    id: str
    event: str
    data: dict[str, object]


def parsed(text: bytes) -> list[Told]:
    found = []
    for block in text.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append(Told(fields["id"], fields["event"], json.loads(fields["data"])))
    return found


@pytest.fixture
def hub(context: TuningContext) -> Hub:
    made = Hub(LiveRuntime(context), "me")
    made.least_pause_s = 0.01
    return made


async def until(stream: AsyncIterator[bytes], event: str) -> list[Told]:
    """Return what a stream tells up to an event."""
    found: list[Told] = []
    async with asyncio.timeout(20):
        async for text in stream:
            found += parsed(text)
            if any(each.event == event for each in found):
                return found
    raise AssertionError(found)


def tell(context: TuningContext, event: str, count: int = 1) -> None:
    for number in range(count):
        context.listeners.tell(event, number=number)


def test_of_many_changes_of_a_kind_only_the_last_is_told_and_the_log_is_whole(hub: Hub, context: TuningContext) -> None:
    async def listen() -> list[Told]:
        stream = hub.stream(None, None)
        assert [each.event for each in parsed(await anext(stream))] == ["hello"]
        tell(context, events.UNTUNED, 20)
        return parsed(await anext(stream))

    found = asyncio.run(listen())
    assert [each.event for each in found].count("log") == 20
    assert [each.data for each in found if each.event == "untuned"] == [{"revision": 20}]
    numbers = [int(each.id.rpartition("-")[2]) for each in found]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("count", [65, 2000])
def test_who_would_have_to_be_told_too_much_is_told_to_ask_anew(hub: Hub, context: TuningContext, count: int) -> None:
    async def listen() -> list[Told]:
        stream = hub.stream(None, None)
        await anext(stream)
        tell(context, events.QUEUED, count)
        found = parsed(await anext(stream))
        tell(context, events.SETTING)
        return found + await until(stream, "settings")

    found = asyncio.run(listen())
    assert found[0].event == "resync"
    assert [each.event for each in found[1:]] == ["settings", "log"]
    assert hub.dropped == count


def test_those_who_listen_to_other_kinds_hear_nothing(hub: Hub, context: TuningContext) -> None:
    async def listen() -> list[Told]:
        stream = hub.stream(None, frozenset({"settings"}))
        await anext(stream)
        tell(context, events.UNTUNED, 5)
        await asyncio.sleep(0.05)
        tell(context, events.SETTING)
        return parsed(await anext(stream))

    assert [each.event for each in asyncio.run(listen())] == ["settings"]


def test_an_interrupt_while_listeners_are_woken_does_not_leave_them_asleep(hub: Hub, context: TuningContext) -> None:
    async def listen() -> list[Told]:
        stream = hub.stream(None, None)
        await anext(stream)
        loop = asyncio.get_running_loop()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "call_soon_threadsafe", interrupt)
            with pytest.raises(KeyboardInterrupt):
                tell(context, events.UNTUNED)
        tell(context, events.SETTING)
        return await until(stream, "settings")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    assert [each.event for each in asyncio.run(listen())] == ["untuned", "log", "settings", "log"]


def test_a_stream_of_an_earlier_process_begins_anew_and_a_fresh_one_does_not(hub: Hub) -> None:
    async def begin(last_id: str | None) -> list[str]:
        return [each.event for each in parsed(await anext(hub.stream(last_id, None)))]

    assert asyncio.run(begin(None)) == ["hello"]
    assert asyncio.run(begin("")) == ["hello"]
    assert asyncio.run(begin("me-0")) == ["hello"]
    for unknown in ("you-0", "me-1", "me--1", "me-\u00b2", "me-" + "9" * 30, "0"):
        assert asyncio.run(begin(unknown)) == ["hello", "resync"]


def test_nothing_of_a_stream_stays_and_all_end_at_once(hub: Hub, context: TuningContext) -> None:
    async def listen() -> list[Told]:
        streams = [hub.stream(None, None) for _ in range(5)]
        for stream in streams:
            await anext(stream)
        assert hub.clients == 5
        await streams.pop().aclose()
        assert hub.clients == 4
        hub.close()
        found = [told for stream in streams for told in await until(stream, "bye")]
        for stream in streams:
            assert [each async for each in stream] == []
        return found

    assert {each.event for each in asyncio.run(listen())} == {"bye"}
    assert hub.clients == 0
    # From a loop that is gone nobody listens any more.
    tell(context, events.SETTING)


@settings(max_examples=25, deadline=None, database=None)
@given(rounds=st.lists(st.lists(st.sampled_from(ALL), min_size=1, max_size=30), min_size=1, max_size=5))
@example(rounds=[[events.UNTUNED] * 21] * 3)
@example(rounds=[[events.UNTUNED] * 16] * 4)
@example(rounds=[[*ALL, *[events.UNTUNED] * 7]] * 5)
def test_two_who_listen_and_one_who_comes_back_hear_the_same_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[str]]
) -> None:
    context = TuningContext(environ={}, directory=tmp_path_factory.mktemp("hub"))
    hub = Hub(LiveRuntime(context), "me")
    hub.least_pause_s = 0.0

    def numbers(found: list[Told]) -> list[object]:
        return [each.data["number"] for each in found if each.event == "log"]

    async def listen() -> None:
        first, second = hub.stream(None, None), hub.stream(None, None)
        begun = parsed(await anext(first)) + parsed(await anext(second))
        heard: list[list[Told]] = [[], []]
        told = 0
        for names in rounds:
            for name in names:
                tell(context, name)
            told += len(names)
            for stream, found in zip((first, second), heard, strict=True):
                while len(numbers(found)) < told:
                    found.extend(parsed(await anext(stream)))
        late = parsed(await anext(hub.stream(begun[0].id, None)))
        assert numbers(heard[0]) == numbers(heard[1]) == list(range(1, told + 1))
        # Besides the log, who comes back is told of each kind once; above sixty-four in all, to ask anew.
        kinds = {each.event for each in heard[0]} - {"log"}
        is_whole = told + len(kinds) <= 64
        assert numbers(late) == (list(range(1, told + 1)) if is_whole else [])
        assert ("resync" in {each.event for each in late}) is not is_whole

    asyncio.run(listen())
    context.close()


def test_what_happens_in_a_forked_child_is_told_to_nobody(service: Service, context: TuningContext) -> None:
    with httpx.stream("GET", service.url + "api/v1/events", timeout=20) as response:
        lines = response.iter_lines()
        assert "event: hello" in islice(lines, 2)
        child = os.fork()
        if child == 0:
            # Only what is safe after a fork of a process with threads.
            context.listeners.tell(events.QUEUED, where="child")
            os._exit(len(service._state.runtime.log()))
        assert os.waitpid(child, 0)[1] == 0
        context.listeners.tell(events.QUEUED, where="parent")
        assert "parent" in next(line for line in lines if line.startswith("data: ") and "where" in line)
