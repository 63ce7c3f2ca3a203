"""Listeners are told when the locks are given back: one may wait for a thread that asks the context something."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.record import Entry, Validator
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.listeners import FILE, TUNED, TUNING_FAILED, TUNING_STARTED, Listeners
from tensorplay.runtime.steered_results import SteeredResults

LONG_S = 20.0
ON = {"TP_TUNABLEOP_ENABLED": "1"}
MakeContext = Callable[..., TuningContext]


def done_elsewhere(action: Callable[[], object]) -> bool:
    """Return whether another thread comes to the end of something while this one waits for it."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(LONG_S)
    return not thread.is_alive()


class Asking:
    """A listener that waits at each event of its thread for another that asks something; not after one in vain."""

    def __init__(self, asked: Callable[[], object]) -> None:
        self.asked = asked
        self.thread = threading.current_thread()
        self.heard: list[str] = []
        self.in_vain: list[str] = []

    def __call__(self, event: str, detail: Mapping[str, object]) -> None:
        if threading.current_thread() is not self.thread:
            return
        told = f"{event} {detail.get('action', '')}".strip()
        self.heard.append(told)
        if not self.in_vain and not done_elsewhere(self.asked):
            self.in_vain.append(told)


class TestListeners:
    @pytest.fixture
    def heard(self) -> list[str]:
        return []

    @pytest.fixture
    def listeners(self, heard: list[str]) -> Listeners:
        made = Listeners()
        made.add(lambda event, detail: heard.append(f"{event} {detail.get('n')}"))
        return made

    def test_hear_what_happens_under_a_lock_after_it_and_in_order(self, listeners: Listeners, heard: list[str]) -> None:
        lock = ForkSafeLock()
        listeners.defer_under(lock)
        with listeners.afterwards(), lock:
            listeners.tell(FILE, n=1)
            with listeners.afterwards(), lock:
                listeners.tell(TUNED, n=2)
            assert heard == []
        assert heard == ["file 1", "tuned 2"]
        listeners.tell(FILE, n=3)
        assert heard[2:] == ["file 3"]

    def test_hear_it_also_when_what_held_the_lock_failed(self, listeners: Listeners, heard: list[str]) -> None:
        lock = ForkSafeLock()
        listeners.defer_under(lock)

        def fail() -> None:
            with listeners.afterwards(), lock:
                listeners.tell(FILE, n=1)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert heard == ["file 1"]

    def test_hear_what_nobody_told_afterwards_before_the_next_event(
        self, listeners: Listeners, heard: list[str]
    ) -> None:
        lock = ForkSafeLock()
        listeners.defer_under(lock)
        with lock:
            listeners.tell(FILE, n=1)
        assert heard == []
        listeners.tell(TUNED, n=2)
        assert heard == ["file 1", "tuned 2"]

    def test_hear_other_threads_at_once(self, listeners: Listeners, heard: list[str]) -> None:
        lock = ForkSafeLock()
        listeners.defer_under(lock)
        with listeners.afterwards(), lock:
            listeners.tell(FILE, n=1)
            assert done_elsewhere(lambda: listeners.tell(FILE, n=2))
            assert heard == ["file 2"]
        assert heard == ["file 2", "file 1"]

    def test_hear_at_once_what_cannot_wait_for_one_lock_but_wait_for_all_others(
        self, listeners: Listeners, heard: list[str]
    ) -> None:
        one, other = ForkSafeLock(), ForkSafeLock()
        listeners.defer_under(one)
        listeners.defer_under(other)
        with listeners.afterwards(), one:
            listeners.tell(FILE, n=1)
            listeners.tell_under(one, TUNING_STARTED, n=2)
            assert heard == ["file 1", "tuning_started 2"]
            with listeners.afterwards(), other:
                listeners.tell_under(one, TUNING_STARTED, n=3)
            assert len(heard) == 2
        assert heard[2:] == ["tuning_started 3"]

    def test_of_an_event_are_those_who_listen_when_it_is_told(self, heard: list[str]) -> None:
        listeners, lock = Listeners(), ForkSafeLock()
        listeners.defer_under(lock)
        with listeners.afterwards(), lock:
            # Nobody listens, so that nothing is kept.
            listeners.tell(FILE, n=1)
            remove = listeners.add(lambda event, _: heard.append(event))
            listeners.tell(TUNED, n=2)
        remove()
        assert heard == ["tuned"]


VALIDATORS = (Validator("A_DEVICE", "of some kind"),)
ENTRY = Entry("GemmTunableOp_Float32", "taN_m1_n8_k8_bias0_dev0", "host_numpy", 1.0)


def test_whatever_the_results_of_a_device_tell_is_told_without_their_lock(tmp_path: Path) -> None:
    listeners = Listeners()
    results = SteeredResults("0", VALIDATORS, str(tmp_path / "results.csv"), listeners)
    listener = Asking(lambda: results.target)
    listeners.add(listener)
    results.ensure_loaded()
    results.record(ENTRY, "measured here")
    results.replace(ENTRY._replace(kernel="Default"), "measured here")
    assert results.exchange(ENTRY._replace(kernel="Default"), ENTRY, "measured here")
    results.read(str(tmp_path / "results.csv"), overwrite=True)
    results.write()
    results.write_to(str(tmp_path / "copy.csv"))
    results.remove(ENTRY.signature)
    results.take("given.csv", (tmp_path / "copy.csv").read_bytes(), overwrite=False)
    results.clear()
    results.record(ENTRY, "override")
    results.go_back(ENTRY.signature)
    results.redirect(str(tmp_path / "missing" / "results.csv"))
    with pytest.warns(UserWarning, match="cannot write"):
        results.record(ENTRY, "measured here")
    assert not results.save_pending()
    assert listener.in_vain == []
    assert listener.heard == [
        *["file read", *["file written"] * 3, "file read", *["file written"] * 3, "file read", *["file written"] * 3],
        *["file write failed"] * 2,
    ]


def test_a_listener_may_wait_for_a_thread_that_asks_while_a_product_is_measured(
    context: TuningContext, call: Any
) -> None:
    listener = Asking(lambda: (context.results_files(), context.get_results(), context.write_file()))
    context.listeners.add(listener)
    call(context)
    assert listener.in_vain == []
    assert listener.heard == ["file read", "tuning_started", "file written", "tuned"]


@pytest.mark.filterwarnings("ignore:a product was not measured")
@pytest.mark.parametrize("mode", ["blocking", "background"])
@pytest.mark.parametrize("last", [TUNED, TUNING_FAILED])
def test_only_that_a_measurement_begins_is_told_while_others_wait_to_measure(
    make_context: MakeContext, make_patient: Any, call: Any, mode: str, last: str
) -> None:
    backend = make_patient()
    context = make_context({**ON, "TP_TUNABLEOP_MODE": mode}, on=backend)
    if last == TUNING_FAILED:
        backend.trial_error = RuntimeError("no memory")
    held: dict[str, bool] = {}

    def is_held_elsewhere() -> bool:
        found = []

        def look() -> None:
            found.append(context._measuring.acquire(blocking=False))
            if found[0]:
                context._measuring.release()

        assert done_elsewhere(look)
        return not found[0]

    context.listeners.add(lambda event, _: held.__setitem__(event, held.get(event, False) or is_held_elsewhere()))
    call(context, on=backend)
    assert context.drain(LONG_S)
    context.close()
    assert {event for event, is_held in held.items() if is_held} == {TUNING_STARTED}
    assert {FILE, last} <= set(held)
