"""The signatures without a winner as they are now: made beside the loop, and when each was first called."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service.current_untuned import MOST_FIRSTS
from tensorplay.service.live_runtime import LiveRuntime

OP = "GemmTunableOp_Float32"
Run = Callable[[int], str]


def test_the_list_is_made_on_the_thread_and_asked_for_again_it_is_at_hand(
    context: TuningContext, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.tuning_disable()
    params = [run(m) for m in (4, 5, 5)]
    runtime = LiveRuntime(context)
    threads: list[str] = []
    get_untuned = context.get_untuned

    def told() -> Any:
        threads.append(threading.current_thread().name)
        return get_untuned()

    async def ask() -> None:
        rows = await runtime.untuned.get()
        assert [(row.params, row.calls) for row in rows] == [(params[1], 2), (params[0], 1)]
        assert await runtime.untuned.get() is rows
        run(6)
        assert len(await runtime.untuned.get()) == 3
        both = await asyncio.gather(runtime.untuned.get(), runtime.untuned.get())
        assert both[0] is both[1]

    monkeypatch.setattr(context, "get_untuned", told)
    asyncio.run(ask())
    assert threads == ["tensorplay-lists"] * 2
    runtime.close()


def test_a_signature_that_has_a_winner_by_now_is_not_listed(context: TuningContext, run: Run) -> None:
    context.tuning_disable()
    params = [run(m) for m in (4, 5)]
    runtime = LiveRuntime(context)

    async def ask() -> list[Signature]:
        await runtime.untuned.get()
        context.override(OP, params[0], "Default")
        return [row.signature for row in await runtime.untuned.get()]

    assert asyncio.run(ask()) == [Signature(OP, params[1])]
    runtime.close()


def test_of_so_many_signatures_the_first_time_is_known_and_the_oldest_are_forgotten(context: TuningContext) -> None:
    untuned = LiveRuntime(context).untuned
    for number in range(MOST_FIRSTS + 3):
        untuned.note(OP, str(number), "first")
    untuned.note(OP, str(MOST_FIRSTS), "second")
    assert [untuned.first_seen(OP, str(number)) for number in (0, 2, 3, MOST_FIRSTS)] == [None, None, "first", "first"]
