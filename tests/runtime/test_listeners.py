import ast
import inspect
import itertools
import logging
import threading
from collections.abc import Mapping

import pytest

from tensorplay.runtime import listeners as module
from tensorplay.runtime.listeners import EVENTS, FILE, SETTING, TUNED, Listeners


class Recorder:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, object]]] = []

    def __call__(self, event: str, detail: Mapping[str, object]) -> None:
        self.heard.append((event, dict(detail)))


class Failing(Recorder):
    """A listener that keeps what it hears, and fails each time."""

    def __call__(self, event: str, detail: Mapping[str, object]) -> None:
        super().__call__(event, detail)
        raise RuntimeError(f"cannot take {event}")


@pytest.fixture
def listeners() -> Listeners:
    return Listeners()


def test_every_listener_hears_every_event_in_order(listeners: Listeners) -> None:
    first, second = Recorder(), Recorder()
    listeners.add(first)
    listeners.add(second)
    listeners.tell(TUNED, kernel="Default", gain=1.0)
    listeners.tell(FILE, event="a fact may have this name", self=None)
    assert first.heard == second.heard
    assert first.heard == [
        ("tuned", {"kernel": "Default", "gain": 1.0}),
        ("file", {"event": "a fact may have this name", "self": None}),
    ]


def test_a_listener_that_is_removed_hears_no_more(listeners: Listeners) -> None:
    kept, removed = Recorder(), Recorder()
    listeners.add(kept)
    remove = listeners.add(removed)
    remove()
    remove()
    listeners.tell(TUNED)
    assert (len(kept.heard), len(removed.heard)) == (1, 0)


def test_a_listener_added_twice_is_two(listeners: Listeners) -> None:
    twice = Recorder()
    remove = listeners.add(twice)
    listeners.add(twice)
    listeners.tell(TUNED)
    remove()
    listeners.tell(TUNED)
    assert len(twice.heard) == 3


def test_it_is_true_while_somebody_listens(listeners: Listeners) -> None:
    assert not listeners
    remove = listeners.add(Recorder())
    assert listeners
    remove()
    assert not listeners


def test_what_a_listener_raises_is_logged_once_and_the_others_still_hear(
    listeners: Listeners, caplog: pytest.LogCaptureFixture
) -> None:
    failing, other_failing, other = Failing(), Failing(), Recorder()
    for listener in (failing, other_failing, other):
        listeners.add(listener)
    for _ in range(3):
        listeners.tell(TUNED)
    assert len(failing.heard) == len(other_failing.heard) == len(other.heard) == 3
    assert [(record.name, record.levelno) for record in caplog.records] == [("tensorplay", logging.ERROR)] * 2
    assert "RuntimeError: cannot take tuned" in caplog.text


def test_an_interrupt_is_not_swallowed(listeners: Listeners) -> None:
    def interrupt(event: str, detail: Mapping[str, object]) -> None:
        raise KeyboardInterrupt

    listeners.add(interrupt)
    with pytest.raises(KeyboardInterrupt):
        listeners.tell(TUNED)


def test_no_listener_can_change_what_the_next_one_hears(listeners: Listeners, caplog: pytest.LogCaptureFixture) -> None:
    def meddle(event: str, detail: Mapping[str, object]) -> None:
        detail["kernel"] = "other"  # type: ignore[index]  # what is tested

    last = Recorder()
    listeners.add(meddle)
    listeners.add(last)
    listeners.tell(TUNED, kernel="Default")
    assert last.heard == [("tuned", {"kernel": "Default"})]
    assert "TypeError" in caplog.text


def test_a_listener_may_add_remove_and_tell_while_it_is_called(listeners: Listeners) -> None:
    late = Recorder()

    def busy(event: str, detail: Mapping[str, object]) -> None:
        if event == TUNED:
            remove()
            listeners.add(late)
            listeners.tell(SETTING)

    remove = listeners.add(busy)
    listeners.tell(TUNED)
    assert late.heard == [("setting", {})]
    listeners.tell(TUNED)
    assert late.heard == [("setting", {}), ("tuned", {})]


def test_no_lock_is_held_while_a_listener_is_called(listeners: Listeners) -> None:
    other = Recorder()

    def elsewhere(event: str, detail: Mapping[str, object]) -> None:
        thread = threading.Thread(target=listeners.add, args=(other,))
        thread.start()
        thread.join(30)
        assert not thread.is_alive()

    remove = listeners.add(elsewhere)
    listeners.tell(TUNED)
    remove()
    listeners.tell(FILE)
    assert other.heard == [("file", {})]


def test_threads_that_add_and_remove_at_once_lose_nobody(listeners: Listeners) -> None:
    threads, rounds = 6, 200
    begin = threading.Barrier(threads)
    kept = [Recorder() for _ in range(threads)]

    def work(recorder: Recorder) -> None:
        begin.wait(30)
        for _ in range(rounds):
            listeners.add(Recorder())()
        listeners.add(recorder)

    workers = [threading.Thread(target=work, args=(recorder,)) for recorder in kept]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
    listeners.tell(TUNED)
    assert [len(recorder.heard) for recorder in kept] == [1] * threads


def test_every_event_is_a_documented_constant_with_its_own_name() -> None:
    assert len(set(EVENTS)) == len(EVENTS)
    body = ast.parse(inspect.getsource(module)).body
    constants = {
        statement.targets[0].id: following
        for statement, following in itertools.pairwise(body)
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Constant)
    }
    assert {name.lower() for name in constants} == set(EVENTS)
    for name, following in constants.items():
        assert getattr(module, name) == name.lower()
        assert isinstance(following, ast.Expr)
        assert isinstance(following.value, ast.Constant)
