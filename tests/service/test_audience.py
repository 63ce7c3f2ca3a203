"""Who listens costs the process nothing while nothing happens, and little while much does."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVarTuple, Unpack

import pytest

from tensorplay.runtime import listeners as events
from tensorplay.runtime.context import TuningContext
from tensorplay.service.hub import Hub
from tensorplay.service.live_runtime import LiveRuntime

Ts = TypeVarTuple("Ts")
AN_HOUR_S = 3600.0
LONGEST_S = 20.0


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts how often it is woken by others, and keeps its timers."""

    def __init__(self) -> None:
        super().__init__()
        self.wakes = 0
        self.timers: list[tuple[float, asyncio.TimerHandle]] = []

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self.wakes += 1
        return super().call_soon_threadsafe(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = super().call_later(delay, callback, *args, context=context)
        self.timers.append((delay, timer))
        return timer

    def looks(self, pause_s: float) -> int:
        return sum(delay == pause_s for delay, _ in self.timers)


@pytest.fixture
def hub(context: TuningContext) -> Hub:
    return Hub(LiveRuntime(context), "me")


def on_loop(play: Callable[[CountingLoop], Coroutine[Any, Any, None]]) -> None:
    loops: list[CountingLoop] = []

    def made() -> CountingLoop:
        loops.append(CountingLoop())
        return loops[0]

    async def played() -> None:
        await play(loops[0])

    with asyncio.Runner(loop_factory=made) as runner:
        runner.run(asyncio.wait_for(played(), LONGEST_S))


def tell(context: TuningContext, count: int = 1) -> None:
    for number in range(count):
        context.listeners.tell(events.UNTUNED, number=number)


def test_what_several_hear_is_made_once(hub: Hub, context: TuningContext) -> None:
    async def play(loop: CountingLoop) -> None:
        streams = [hub.stream(None, None) for _ in range(8)]
        for stream in streams:
            await anext(stream)
        tell(context, 3)
        first, *others = await asyncio.gather(*map(anext, streams))
        assert first.count(b"event: log\n") == 3
        assert all(each is first for each in others)

    on_loop(play)


def test_the_loop_is_woken_once_however_much_happens_before_it_looks_again(hub: Hub, context: TuningContext) -> None:
    async def play(loop: CountingLoop) -> None:
        hub.least_pause_s = AN_HOUR_S
        stream = hub.stream(None, None)
        await anext(stream)
        before = loop.wakes
        tell(context)
        await anext(stream)
        assert (loop.wakes - before, loop.looks(AN_HOUR_S)) == (1, 1)
        tell(context, 100)
        await asyncio.sleep(0)
        assert (loop.wakes - before, loop.looks(AN_HOUR_S)) == (1, 1)

    on_loop(play)


def test_nobody_looks_again_when_nothing_happened_since(hub: Hub, context: TuningContext) -> None:
    async def play(loop: CountingLoop) -> None:
        hub.least_pause_s = 0.01
        stream = hub.stream(None, None)
        await anext(stream)
        for number in range(1, 4):
            before = loop.wakes
            tell(context)
            assert b"event: untuned\n" in await anext(stream)
            # Timers run in their order: the look is over when this is.
            await asyncio.sleep(0.05)
            assert (loop.wakes - before, loop.looks(0.01)) == (1, number)

    on_loop(play)


def test_without_anybody_who_listens_nothing_is_left_on_the_loop(hub: Hub, context: TuningContext) -> None:
    async def play(loop: CountingLoop) -> None:
        hub.least_pause_s = AN_HOUR_S
        streams = [hub.stream(None, None) for _ in range(3)]
        for stream in streams:
            await anext(stream)
        tell(context)
        await anext(streams[0])
        ours = [each for each in loop.timers if each[0] != LONGEST_S]
        for stream in streams:
            await stream.aclose()
        assert hub.clients == 0
        before = loop.wakes
        tell(context)
        assert loop.wakes == before
        assert len(ours) == 2
        assert all(timer.cancelled() for _, timer in ours)

    on_loop(play)


def test_who_takes_nothing_for_a_while_is_told_all_of_it_later(hub: Hub, context: TuningContext) -> None:
    async def play(loop: CountingLoop) -> None:
        hub.least_pause_s = 0.001
        quick, slow = hub.stream(None, None), hub.stream(None, None)
        await anext(quick)
        await anext(slow)
        for _ in range(3):
            tell(context)
            await anext(quick)
        news = await anext(slow)
        assert (news.count(b"event: log\n"), news.count(b"event: untuned\n")) == (3, 1)
        tell(context)
        assert await anext(slow) is await anext(quick)

    on_loop(play)


def test_who_is_told_nothing_for_a_while_is_told_so(
    hub: Hub, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorplay.service.audience._SILENCE_S", 0.01)

    async def play(loop: CountingLoop) -> None:
        stream = hub.stream(None, frozenset({"settings"}))
        await anext(stream)
        for _ in range(3):
            tell(context)
            assert await anext(stream) == b": nothing new\n\n"
        context.listeners.tell(events.SETTING)
        while (news := await anext(stream)).startswith(b":"):
            pass
        assert b"event: settings\n" in news

    on_loop(play)
