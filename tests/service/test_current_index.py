"""The winners as they are now: made beside the loop, once for all who wait, and never older than the question."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tensorplay.database.csv_text import format_results
from tensorplay.database.record import Entry, Validator
from tensorplay.runtime.archive import Recorded
from tensorplay.runtime.context import TuningContext
from tensorplay.service.listing import Filter
from tensorplay.service.live_runtime import LiveRuntime
from tensorplay.testing import scripted_kernel

OP, PARAMS = "GemmTunableOp_Float32", "taN_m{}_n3_k5_bias0_dev0"
MANY = 3000
KERNELS = [scripted_kernel(number) for number in (1, 2, 3)]


class Gate:
    """Winners that are read only once the gate is open, and who read them."""

    def __init__(self, each: Callable[[], Iterator[Recorded]]) -> None:
        self._each = each
        self.is_open = threading.Event()
        self.is_reading = threading.Event()
        self.threads: list[str] = []

    def __call__(self) -> Iterator[Recorded]:
        self.threads.append(threading.current_thread().name)
        self.is_reading.set()
        assert self.is_open.wait(30)
        yield from self._each()


@pytest.fixture
def load(context: TuningContext) -> Callable[[str], None]:
    """Replaces all winners."""
    validators = [Validator(*pair) for pair in context.validators_of("0")]

    def replace(kernel: str) -> None:
        entries = [Entry(OP, PARAMS.format(m), kernel, 0.1 * m) for m in range(1, MANY + 1)]
        context.load_results("0", "x.csv", format_results(validators, entries).encode(), overwrite=True)

    replace(KERNELS[0])
    return replace


@pytest.fixture
def runtime(context: TuningContext, load: Callable[[str], None]) -> Iterator[LiveRuntime]:
    del load
    made = LiveRuntime(context)
    yield made
    made.close()


@pytest.fixture
def gate(context: TuningContext, runtime: LiveRuntime, monkeypatch: pytest.MonkeyPatch) -> Gate:
    runtime.winners.now()
    made = Gate(context.each_recorded)
    monkeypatch.setattr(context, "each_recorded", made)
    return made


async def reading(gate: Gate) -> None:
    """Wait until somebody reads the winners; it is the loop that waits, and goes on meanwhile."""
    assert await asyncio.to_thread(gate.is_reading.wait, 30)


def test_the_loop_goes_on_while_an_index_is_made_once_for_all_who_wait(
    runtime: LiveRuntime, gate: Gate, load: Callable[[str], None]
) -> None:
    async def ask() -> list[Any]:
        load(KERNELS[1])
        asked = [asyncio.create_task(runtime.winners.get()) for _ in range(50)]
        pages = [asyncio.create_task(runtime.winners.page(Filter(), "-m", 5, None)) for _ in range(50)]
        await reading(gate)
        assert not any(each.done() for each in asked + pages)
        gate.is_open.set()
        found = await asyncio.gather(*asked)
        assert {page.revision for page in await asyncio.gather(*pages)} == {found[0].revision}
        return found

    found = asyncio.run(ask())
    assert all(each is found[0] for each in found)
    assert gate.threads == ["tensorplay-lists"]
    assert {row.kernel for row in found[0].rows(Filter())} == {KERNELS[1]}


def test_who_asks_while_an_older_index_is_made_gets_a_newer_one_and_each_says_which(
    runtime: LiveRuntime, gate: Gate, load: Callable[[str], None]
) -> None:
    async def ask() -> tuple[Any, list[Any]]:
        load(KERNELS[1])
        older = runtime.revision("results")
        first = asyncio.create_task(runtime.winners.page(Filter(), "m", 500, None))
        await reading(gate)
        load(KERNELS[2])
        later = [asyncio.create_task(runtime.winners.page(Filter(), "m", 500, None)) for _ in range(20)]
        await asyncio.sleep(0)
        gate.is_open.set()
        page = await first
        assert page.revision == older
        return page, await asyncio.gather(*later)

    _, later = asyncio.run(ask())
    assert {page.revision for page in later} == {runtime.revision("results")}
    assert all({row.kernel for row in page.rows} == {KERNELS[2]} for page in later)
    assert len(gate.threads) == 2


def test_what_is_known_but_for_a_few_changes_goes_to_no_thread(
    runtime: LiveRuntime, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.winners.now().page(Filter(), "op", 1, None)

    async def fail(_: object) -> Any:
        raise AssertionError("a thread was asked")

    async def ask() -> None:
        index = await runtime.winners.get()
        assert await runtime.winners.get() is index
        for m in range(1, 100):
            context.pin_winner(OP, PARAMS.format(m))
        page = await runtime.winners.page(Filter(), "op", 100, None)
        assert (page.total, page.known, page.revision) == (MANY, MANY, runtime.revision("results"))
        assert sum(row.pinned for row in (await runtime.winners.get()).rows(Filter())) == 99
        assert len(list(await runtime.winners.rows(Filter()))) == MANY

    monkeypatch.setattr(runtime.worker, "compute", fail)
    asyncio.run(ask())


def test_what_has_to_be_sorted_or_found_first_is_so_on_the_thread(
    runtime: LiveRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    compute = runtime.worker.compute

    async def counted(function: Callable[[], Any]) -> Any:
        asked.append(function)
        return await compute(function)

    async def ask() -> None:
        await runtime.winners.get()
        for _ in range(3):
            page = await runtime.winners.page(Filter(m_min=MANY - 9), "-time_ms", 3, None)
            assert ([row.m for row in page.rows], page.total) == ([MANY, MANY - 1, MANY - 2], 10)
            assert [row.m for row in await runtime.winners.rows(Filter(m_max=2), "-m")] == [2, 1]

    monkeypatch.setattr(runtime.worker, "compute", counted)
    asyncio.run(ask())
    assert len(asked) == 3


def test_who_gives_up_waiting_takes_nothing_from_the_others(
    runtime: LiveRuntime, gate: Gate, load: Callable[[str], None]
) -> None:
    async def ask() -> None:
        load(KERNELS[1])
        first, second = (asyncio.create_task(runtime.winners.get()) for _ in range(2))
        await reading(gate)
        first.cancel()
        gate.is_open.set()
        assert len(await second) == MANY
        assert first.cancelled()

    asyncio.run(ask())


def test_winners_that_cannot_be_read_fail_who_asked_and_not_the_next(
    runtime: LiveRuntime, context: TuningContext, load: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Iterator[Recorded]:
        raise MemoryError

    async def ask() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(context, "each_recorded", fail)
            with pytest.raises(MemoryError):
                await runtime.winners.get()
        assert {row.kernel for row in (await runtime.winners.get()).rows(Filter())} == {KERNELS[1]}

    runtime.winners.now()
    load(KERNELS[1])
    asyncio.run(ask())
