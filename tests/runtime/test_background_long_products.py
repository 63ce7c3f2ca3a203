"""With `MODE=background` a product that takes long is no silence, and what waits inside of one is not waited for."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorplay import ops
from tensorplay.backends.host.backend import HostBackend
from tensorplay.gemm import GemmProblem
from tensorplay.runtime import deferred, process
from tensorplay.runtime.context import TuningContext

LONG = 20.0


class Slow(HostBackend):
    """A host whose products take until they are let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.goes_on = threading.Event(), threading.Event()

    def first_choice(self, problem: GemmProblem) -> Any:
        plan = super().first_choice(problem)

        def run(*operands: Any) -> Any:
            self.began.set()
            assert self.goes_on.wait(LONG)
            return plan.run(*operands)

        return replace(plan, run=run)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def context(tmp_path: Any, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> Iterator[TuningContext]:
    environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MODE": "background"}
    made = TuningContext(environ=environ, directory=tmp_path, backends={"cpu": slow})
    monkeypatch.setattr(process.state, "context", made)
    yield made
    slow.goes_on.set()
    made.close()


def multiply() -> Any:
    return ops.mm(np.ones((3, 4), np.float32), np.ones((4, 5), np.float32))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Waits for so many looks for a product that is being made."""
    seen = threading.Semaphore(0)
    look = deferred._is_multiplying

    def counted() -> bool:
        found = look()
        seen.release()
        return found

    def wait(times: int) -> None:
        for _ in range(times):
            assert seen.acquire(timeout=LONG)

    monkeypatch.setattr(deferred, "_is_multiplying", counted)
    return wait


def test_nothing_is_measured_while_another_thread_is_inside_of_a_product(
    context: TuningContext, slow: Slow, looks: Callable[[int], None]
) -> None:
    begun: list[bool] = []
    context.listeners.add(lambda event, _: begun.append(event == "tuning_started"))
    thread = threading.Thread(target=multiply)
    thread.start()
    assert slow.began.wait(LONG)
    looks(3)
    assert not any(begun)
    assert context.stats()["waiting"] == 1
    slow.goes_on.set()
    thread.join()
    assert context.drain(LONG)
    assert any(begun)


def test_a_listener_that_drains_inside_of_a_product_is_not_waited_for(context: TuningContext, slow: Slow) -> None:
    drained: list[bool] = []

    def hear(event: str, detail: Any) -> None:
        del detail
        if event == "queued":
            drained.append(context.drain(LONG))

    slow.goes_on.set()
    context.listeners.add(hear)
    multiply()
    assert drained == [True]


def test_looking_keeps_nothing_of_other_threads_alive() -> None:
    class Large:
        pass

    began, goes_on = threading.Event(), threading.Event()
    kept: list[weakref.ref[Large]] = []

    def work() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        began.set()
        goes_on.wait(LONG)

    thread = threading.Thread(target=work)
    gc.disable()
    try:
        thread.start()
        assert began.wait(LONG)
        assert not deferred._is_multiplying()
        goes_on.set()
        thread.join()
        assert kept[0]() is None
    finally:
        gc.enable()


def test_modules_of_any_name_are_looked_through() -> None:
    began, goes_on = threading.Semaphore(0), threading.Event()

    def wait() -> None:
        began.release()
        goes_on.wait(LONG)

    names: list[Any] = [None, 7, []]
    threads = [threading.Thread(target=exec, args=("wait()", {"wait": wait, "__name__": name})) for name in names]
    for thread in threads:
        thread.start()
    try:
        for _ in threads:
            assert began.acquire(timeout=LONG)
        assert not deferred._is_multiplying()
    finally:
        goes_on.set()
        for thread in threads:
            thread.join()
