"""The queue and its thread: each signature once, one at a time, and no thread where there is nothing to do."""

import os
import threading
from collections.abc import Iterator

import pytest

from tensorplay.errors import LaunchError
from tensorplay.gemm import Signature
from tensorplay.runtime.background import Background, Placed

LONG = 20.0


class FakeTask:
    def __init__(self, name: str, device: str = "0") -> None:
        self.signature = Signature("op", name)
        self.device = device
        self.is_cancelled = False

    def __repr__(self) -> str:
        return self.signature.params


class Measurer:
    """Measures nothing, remembers what it was given, and can be held."""

    def __init__(self) -> None:
        self.measured: list[str] = []
        self.idle: set[str] = {"0", "1"}
        self.is_open = threading.Event()
        self.is_open.set()
        self.began = threading.Semaphore(0)
        self.again: dict[str, int] = {}
        self.threads: set[threading.Thread] = set()

    def measure(self, task: FakeTask) -> bool:
        self.threads.add(threading.current_thread())
        self.began.release()
        assert self.is_open.wait(LONG)
        self.measured.append(task.signature.params)
        left = self.again.get(task.signature.params, 0)
        self.again[task.signature.params] = left - 1
        return left <= 0

    def is_time(self, task: FakeTask) -> bool:
        return task.device in self.idle


@pytest.fixture
def measurer() -> Iterator[Measurer]:
    made = Measurer()
    yield made
    made.is_open.set()


@pytest.fixture
def background(measurer: Measurer) -> Iterator[Background[FakeTask]]:
    made = Background(measurer.measure, measurer.is_time, most=4)
    yield made
    measurer.is_open.set()
    made.end(LONG)


def held(background: Background[FakeTask], measurer: Measurer, name: str) -> None:
    """Let the thread begin with a task, and not end it."""
    measurer.is_open.clear()
    assert background.put(FakeTask(name)) is Placed.NEW
    assert measurer.began.acquire(timeout=LONG)


def test_no_thread_is_there_before_the_first_task_nor_after_the_last(
    background: Background[FakeTask], measurer: Measurer
) -> None:
    # By name and not by number: one of an earlier test may end meanwhile.
    before = set(threading.enumerate())
    assert background.drain(0)
    assert set(threading.enumerate()) <= before
    background.put(FakeTask("a"))
    assert background.drain(LONG)
    (thread,) = measurer.threads
    thread.join(LONG)
    assert not thread.is_alive()
    assert thread.daemon
    background.put(FakeTask("b"))
    assert background.drain(LONG)
    assert measurer.measured == ["a", "b"]


def test_tasks_are_measured_one_by_one_in_the_order_they_came(
    background: Background[FakeTask], measurer: Measurer
) -> None:
    held(background, measurer, "a")
    for name in "bcd":
        background.put(FakeTask(name))
    assert (background.waiting, background.measuring) == (3, Signature("op", "a"))
    measurer.is_open.set()
    assert background.drain(LONG)
    assert measurer.measured == list("abcd")
    assert len(measurer.threads) == 1
    assert (background.waiting, background.measuring) == (0, None)


def test_a_signature_that_waits_or_is_being_measured_is_not_queued_again(
    background: Background[FakeTask], measurer: Measurer
) -> None:
    held(background, measurer, "a")
    assert background.put(FakeTask("b")) is Placed.NEW
    assert [background.put(FakeTask(name)) for name in "ab"] == [Placed.KNOWN] * 2
    assert [background.state(Signature("op", name)) for name in "abc"] == ["measuring", "queued", None]
    measurer.is_open.set()
    assert background.drain(LONG)
    assert measurer.measured == ["a", "b"]
    assert background.put(FakeTask("a")) is Placed.NEW


def test_the_queue_is_bounded(background: Background[FakeTask], measurer: Measurer) -> None:
    held(background, measurer, "a")
    assert [background.put(FakeTask(name)) for name in "bcdef"] == [Placed.NEW] * 4 + [Placed.REFUSED]
    assert background.state(Signature("op", "f")) is None


def test_a_busy_device_does_not_hold_up_another(background: Background[FakeTask], measurer: Measurer) -> None:
    measurer.idle = {"1"}
    background.put(FakeTask("busy", "0"))
    background.put(FakeTask("idle", "1"))
    assert measurer.began.acquire(timeout=LONG)
    assert not background.drain(0.05)
    assert measurer.measured == ["idle"]
    measurer.idle = {"0"}
    assert background.drain(LONG)
    assert measurer.measured == ["idle", "busy"]


def test_what_is_to_be_measured_again_goes_to_the_end(background: Background[FakeTask], measurer: Measurer) -> None:
    measurer.again["a"] = 2
    held(background, measurer, "a")
    background.put(FakeTask("b"))
    measurer.is_open.set()
    assert background.drain(LONG)
    assert measurer.measured == ["a", "b", "a", "a"]


def test_clearing_calls_off_what_is_measured_and_drops_what_waits(
    background: Background[FakeTask], measurer: Measurer
) -> None:
    measurer.again["a"] = 5
    held(background, measurer, "a")
    background.put(FakeTask("b"))
    background.clear()
    assert background.waiting == 0
    measurer.is_open.set()
    assert background.drain(LONG)
    # It was called off, so that it is not measured again although it asked for that.
    assert measurer.measured == ["a"]


def test_a_task_that_is_removed_waits_no_longer(background: Background[FakeTask], measurer: Measurer) -> None:
    held(background, measurer, "a")
    background.put(FakeTask("b"))
    for name in "abz":
        background.remove(Signature("op", name))
    measurer.is_open.set()
    assert background.drain(LONG)
    assert measurer.measured == ["a"]


@pytest.mark.parametrize("timeout_s", [0, -1.0, 0.01])
def test_draining_gives_up_when_the_time_is_over(
    background: Background[FakeTask], measurer: Measurer, timeout_s: float
) -> None:
    held(background, measurer, "a")
    assert not background.drain(timeout_s)


def test_draining_for_longer_than_the_interpreter_can_wait_is_draining_for_ever(
    background: Background[FakeTask], measurer: Measurer
) -> None:
    background.put(FakeTask("a"))
    assert background.drain(1e300)


def test_draining_on_the_thread_itself_does_not_wait_for_itself(measurer: Measurer) -> None:
    answers: list[bool] = []
    background: Background[FakeTask]

    def measure(task: FakeTask) -> bool:
        del task
        answers.append(background.drain(LONG))
        return True

    background = Background(measure, measurer.is_time)
    background.put(FakeTask("a"))
    assert background.drain(LONG)
    assert answers == [False]


def test_a_measurement_that_raises_costs_that_task_only(measurer: Measurer, caplog: pytest.LogCaptureFixture) -> None:
    def measure(task: FakeTask) -> bool:
        if task.signature.params == "bad":
            raise LaunchError("broken")
        return measurer.measure(task)

    background = Background(measure, measurer.is_time)
    background.put(FakeTask("bad"))
    background.put(FakeTask("good"))
    assert background.drain(LONG)
    assert measurer.measured == ["good"]
    assert "measuring bad in the background failed" in caplog.text


def test_a_device_that_cannot_be_asked_costs_that_task_only(
    measurer: Measurer, caplog: pytest.LogCaptureFixture
) -> None:
    def is_time(task: FakeTask) -> bool:
        if task.device == "gone":
            raise LaunchError("lost")
        return True

    background = Background(measurer.measure, is_time)
    background.put(FakeTask("bad", "gone"))
    background.put(FakeTask("good"))
    assert background.drain(LONG)
    assert measurer.measured == ["good"]
    assert "device gone is idle could not be found out" in caplog.text


def test_after_the_end_nothing_is_taken(background: Background[FakeTask], measurer: Measurer) -> None:
    held(background, measurer, "a")
    background.put(FakeTask("b"))
    background.end(0)
    assert background.put(FakeTask("c")) is Placed.REFUSED
    measurer.is_open.set()
    assert background.drain(LONG)
    assert measurer.measured == ["a"]
    background.end()


def test_where_no_thread_can_be_started_nothing_is_taken(
    background: Background[FakeTask], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        assert [background.put(FakeTask("a")) for _ in range(3)] == [Placed.REFUSED] * 3
    assert caplog.text.count("can't start new thread") == 1
    assert background.waiting == 0
    assert background.put(FakeTask("a")) is Placed.NEW


def test_many_threads_queue_each_signature_once(measurer: Measurer) -> None:
    background = Background(measurer.measure, measurer.is_time)
    placed: list[Placed] = []

    def put() -> None:
        placed.extend(background.put(FakeTask(str(number % 50))) for number in range(200))

    measurer.is_open.clear()
    threads = [threading.Thread(target=put) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert placed.count(Placed.NEW) == 50
    assert Placed.REFUSED not in placed
    measurer.is_open.set()
    assert background.drain(LONG)
    assert sorted(measurer.measured) == sorted(map(str, range(50)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_anew_with_an_empty_queue(background: Background[FakeTask], measurer: Measurer) -> None:
    held(background, measurer, "a")
    background.put(FakeTask("b"))

    def goes_on() -> bool:
        is_empty = (background.waiting, background.measuring) == (0, None)
        is_taken = background.put(FakeTask("c")) is Placed.NEW
        measurer.is_open.set()
        return is_empty and is_taken and background.drain(LONG) and measurer.measured == ["c"]

    child = os.fork()
    if child == 0:
        os._exit(0 if goes_on() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (background.waiting, background.state(Signature("op", "a"))) == (1, "measuring")
    measurer.is_open.set()
    assert background.drain(LONG)
    assert measurer.measured == ["a", "b"]
