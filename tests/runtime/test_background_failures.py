"""A task that failed in a way nobody foresaw may be queued anew, and nothing is over before that is told."""

import threading

import pytest

from tensorplay.errors import LaunchError
from tensorplay.gemm import Signature
from tensorplay.runtime.background import Background, Placed

LONG = 20.0


class FakeTask:
    def __init__(self, name: str) -> None:
        self.signature = Signature("op", name)
        self.device = "0"
        self.is_cancelled = False


@pytest.mark.parametrize("fails", ["the measurement", "the look at the device"])
def test_a_task_that_failed_may_be_queued_anew_as_soon_as_that_is_told(fails: str) -> None:
    told: list[tuple[str, str, str | None, Placed]] = []
    measured: list[str] = []
    errors = [LaunchError("one"), LaunchError("other")]

    def measure(task: FakeTask) -> bool:
        if errors and fails == "the measurement":
            raise errors.pop()
        measured.append(task.signature.params)
        return True

    def is_time(_: FakeTask) -> bool:
        if errors and fails == "the look at the device":
            raise errors.pop()
        return True

    def failed(task: FakeTask, error: Exception) -> None:
        name, state = task.signature.params, queue.state(task.signature)
        told.append((name, str(error), state, queue.put(FakeTask(name))))

    queue = Background(measure, is_time, failed=failed)
    queue.put(FakeTask("a"))
    assert queue.drain(LONG)
    assert told == [("a", "other", None, Placed.NEW), ("a", "one", None, Placed.NEW)]
    assert measured == ["a"]


def test_nobody_finds_it_drained_before_a_failure_is_told() -> None:
    begun, told = threading.Event(), threading.Event()

    def measure(_: FakeTask) -> bool:
        raise LaunchError("broken")

    def failed(*_: object) -> None:
        begun.set()
        assert told.wait(LONG)

    queue: Background[FakeTask] = Background(measure, lambda _: True, failed=failed)
    queue.put(FakeTask("a"))
    assert begun.wait(LONG)
    assert not queue.drain(0)
    told.set()
    assert queue.drain(LONG)
