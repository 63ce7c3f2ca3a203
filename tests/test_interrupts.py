import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from tensorplay.interrupts import is_of_a_handler


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
