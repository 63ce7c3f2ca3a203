"""A time limit of the program's own, by a signal handler that raises, reaches it whatever it interrupts."""

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorplay import mm
from tensorplay.backends.host.backend import HostBackend
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context


class LateError(Exception):
    pass


def late(*_: object) -> None:
    raise LateError("the program's own time limit")


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, late)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def context(tmp_path: Any) -> TuningContext:
    return TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"cpu": HostBackend()})


def ringing(action: Callable[..., Any]) -> Callable[..., Any]:
    """Return what rings the limit in the middle of an action, the first time only."""
    rings = iter([True])

    def rung(*operands: Any, **named: Any) -> Any:
        if next(rings, False):
            signal.raise_signal(signal.SIGUSR1)
        return action(*operands, **named)

    return rung


@pytest.mark.parametrize("where", ["open_trial", "candidates", "rebuild", "first_choice"])
def test_a_limit_that_rings_while_a_product_is_measured_reaches_the_program_and_nothing_is_given_up(
    context: TuningContext, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    a = np.ones((16, 64), np.float32)
    monkeypatch.setattr(HostBackend, where, ringing(getattr(HostBackend, where)))
    with use_context(context):
        rung = False
        for _ in range(3):
            try:
                mm(a, a.T)
            except LateError:
                rung = True
        assert rung or where == "rebuild"
        assert context.stats()["measured"] == 1
        assert context.stats()["rejected"] == 0


def test_however_often_it_rings_it_is_held_against_no_signature(
    context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    context.listeners.add(lambda event, _detail: heard.append(event))
    a = np.ones((16, 64), np.float32)
    open_trial = HostBackend.open_trial
    with use_context(context):
        for _ in range(5):
            monkeypatch.setattr(HostBackend, "open_trial", ringing(open_trial))
            with pytest.raises(LateError):
                mm(a, a.T)
        mm(a, a.T)
        assert context.stats()["measured"] == 1
    assert "tuning_failed" not in heard


def test_a_limit_that_rings_in_a_kernel_that_is_timed_reaches_the_program(
    context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_choice, matmul = HostBackend.first_choice, ringing(np.matmul)
    monkeypatch.setattr(
        HostBackend, "first_choice", lambda self, problem: replace(first_choice(self, problem), run=matmul)
    )
    a = np.ones((16, 64), np.float32)
    with use_context(context):
        with pytest.raises(LateError):
            mm(a, a.T)
        np.testing.assert_allclose(mm(a, a.T), a @ a.T)
        assert context.stats()["measured"] == 1
