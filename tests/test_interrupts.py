import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tensorplay.interrupts import is_nested, is_of_a_handler, note_handlers
from tensorplay.runtime.listeners import Listeners

ROOT = Path(__file__).parents[1]


class LateError(Exception):
    pass


def late(*_: object) -> None:
    raise LateError("the program's own time limit")


def late_of(_name: str, *_: object) -> None:
    deeper()


def deeper() -> None:
    raise LateError("deeper")


class Limit:
    def ring(self, _number: int, _frame: FrameType | None) -> None:
        deeper()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        deeper()


@pytest.fixture
def install() -> Iterator[Callable[[Any], object]]:
    before = signal.getsignal(signal.SIGUSR1)
    yield partial(signal.signal, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "handler", [late, partial(late_of, "limit"), partial(partial(late_of), "limit"), Limit().ring, Limit()]
)
def test_what_a_handler_raises_or_lets_pass_is_known_by_its_frame(
    install: Callable[[Any], object], handler: Callable[..., None]
) -> None:
    install(handler)
    with pytest.raises(LateError) as raised:
        signal.raise_signal(signal.SIGUSR1)
    assert is_of_a_handler(raised.value)


def test_what_anything_else_raises_is_not_a_handlers(install: Callable[[Any], object]) -> None:
    install(late)
    with pytest.raises(LateError) as raised:
        deeper()
    assert not is_of_a_handler(raised.value)
    assert not is_of_a_handler(LateError("never raised"))


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler])
def test_handlers_without_a_frame_are_passed_over(install: Callable[[Any], object], handler: Any) -> None:
    install(handler)
    assert not is_of_a_handler(LateError())


def test_any_thread_may_ask(install: Callable[[Any], object]) -> None:
    install(late)
    found: list[bool] = []
    asking = threading.Thread(target=lambda: found.append(is_of_a_handler(LateError())))
    asking.start()
    asking.join()
    assert found == [False]


def test_a_handler_that_removes_itself_is_known_where_it_was_noted(install: Callable[[Any], object]) -> None:
    def once(*_: object) -> None:
        install(signal.SIG_DFL)
        raise LateError

    for is_noted in (False, True):
        install(once)
        if is_noted:
            note_handlers()
        with pytest.raises(LateError) as raised:
            signal.raise_signal(signal.SIGUSR1)
        assert is_of_a_handler(raised.value) is is_noted


@pytest.fixture
def other_thread() -> Iterator[None]:
    """Let there be another thread."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield
    end.set()
    thread.join()


def called_in(module: str, call: Callable[[], object]) -> Any:
    """Call from a function of a module of that name."""
    space: dict[str, Any] = {"__name__": module, "call": call}
    exec("def _call_each():\n    return call()", space)  # noqa: S102 - a function of another module
    return space["_call_each"]()


@pytest.mark.usefixtures("other_thread")
@pytest.mark.parametrize(
    ("module", "found"),
    [
        ("tensorplay.runtime.device_results", True),
        ("tensorplay.service.live_runtime", True),
        ("tensorplay", True),
        ("tensorplay.runtime.listeners", False),
        ("tensorplay.cli.main", False),
        ("tensorplay.ops.products", False),
        ("tensorplay.distributed.worker", False),
        ("tensorplayer", False),
        ("program", False),
    ],
)
def test_who_comes_in_the_middle_of_our_work_is_nested(module: str, found: bool) -> None:
    assert called_in(module, lambda: called_in("tensorplay.ops", is_nested)) is found


@pytest.mark.usefixtures("other_thread")
def test_a_product_inside_of_one_that_is_nested_is_nested() -> None:
    def inner() -> object:
        return called_in("tensorplay.ops", is_nested)

    assert called_in("tensorplay.database.store", lambda: called_in("tensorplay.ops", inner))


@pytest.mark.usefixtures("other_thread")
def test_a_product_is_not_nested_in_itself_nor_a_listener_in_who_calls_it() -> None:
    assert not called_in("tensorplay.ops", is_nested)
    found: list[bool] = []
    listeners = Listeners()
    listeners.add(lambda *_: found.append(called_in("tensorplay.ops", is_nested)))
    called_in("tensorplay.runtime.measuring", lambda: listeners.tell("event"))
    assert found == [False]


def test_without_another_thread_nobody_holds_what_is_waited_for() -> None:
    code = (
        "from tests.test_interrupts import called_in\n"
        "from tensorplay.interrupts import is_nested\n"
        "print(called_in('tensorplay.runtime.device_results', lambda: called_in('tensorplay.ops', is_nested)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
