"""With `MODE=background` a miss runs the first choice at once, and its winner comes when the device is idle."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime import background
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
LONG = 20.0


@pytest.fixture
def backend(make_patient: Any) -> Any:
    return make_patient()


@pytest.fixture
def context(later: Any) -> TuningContext:
    made: TuningContext = later()
    return made


def test_the_first_choice_runs_at_once_and_the_winner_comes_later(
    context: TuningContext, call: Any, backend: Any, tmp_path: Path, problem: GemmProblem
) -> None:
    call(context)
    assert context.drain(LONG)
    call(context)
    assert backend.runs == [FIRST, FAST]
    assert backend.threads != [threading.main_thread()]
    assert FAST in (tmp_path / "tunableop_results0.csv").read_text()
    stats = context.stats()
    assert (stats["queued"], stats["measured"], stats["untuned"]) == (1, 1, 0)
    assert (stats["first_choice"], stats["replayed"]) == (1, 1)
    assert context.get_untuned() == []
    assert context.explain(*signature_of(problem))["verdict"] == "winner"


def test_another_process_replays_it(context: TuningContext, later: Any, call: Any, backend: Any) -> None:
    call(context)
    assert context.drain(LONG)
    other = later()
    call(other)
    assert backend.runs == [FIRST, FAST]
    assert other.stats()["queued"] == 0


def test_what_waits_and_what_is_measured_can_be_seen(
    context: TuningContext, call: Any, backend: Any, problem: GemmProblem
) -> None:
    def seen() -> tuple[int, int, object]:
        stats = context.stats()
        return stats["waiting"], stats["measuring"], context.explain(*signature_of(problem))["background"]

    assert seen() == (0, 0, None)
    backend.idle = False
    call(context)
    assert seen() == (1, 0, "queued")
    backend.is_open.clear()
    backend.idle = True
    assert backend.began.acquire(timeout=LONG)
    assert seen() == (0, 1, "measuring")
    backend.is_open.set()
    assert context.drain(LONG)
    assert seen() == (0, 0, None)


def test_a_signature_is_queued_once_however_often_it_is_called(context: TuningContext, call: Any, backend: Any) -> None:
    backend.idle = False
    for _ in range(5):
        call(context)
    assert context.stats()["queued"] == 1
    assert context.background.waiting == 1
    assert backend.noted == [("0", None)] * 5


def test_nothing_is_measured_while_the_program_makes_products(
    context: TuningContext, call: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between two looks the thread that multiplies must have had its turn, on a busy machine too.
    monkeypatch.setattr(background, "_PAUSE_S", 1.0)
    ended = threading.Event()
    backend.idle = False
    call(context)

    def go_on() -> None:
        while not ended.is_set():
            call(context)

    thread = threading.Thread(target=go_on)
    thread.start()
    backend.idle = True
    try:
        assert not context.drain(2.5)
        assert backend.trials == []
    finally:
        ended.set()
        thread.join()
    assert context.drain(LONG)
    assert len(backend.trials) == 1


@pytest.mark.parametrize("obstacle", ["idle", "is_capture_live"])
def test_nothing_is_measured_while_the_device_is_busy_or_captured(
    context: TuningContext, call: Any, backend: Any, obstacle: str
) -> None:
    before = getattr(backend, obstacle)
    backend.idle = False
    call(context)
    backend.idle = True
    setattr(backend, obstacle, not before)
    assert not context.drain(0.1)
    assert backend.trials == []
    setattr(backend, obstacle, before)
    assert context.drain(LONG)
    assert len(backend.trials) == 1


def test_a_signature_pinned_while_it_waits_is_measured_no_more(context: TuningContext, call: Any, backend: Any) -> None:
    backend.idle = False
    call(context)
    backend.is_capture_live = True
    call(context)
    backend.is_capture_live = False
    backend.idle = True
    assert context.drain(LONG)
    call(context)
    assert backend.runs == [FIRST] * 3
    assert backend.trials == []
    assert context.get_results() == []


def test_one_pinned_while_it_is_measured_is_recorded_for_others_and_not_swapped_in(
    context: TuningContext, later: Any, call: Any, backend: Any
) -> None:
    def pin() -> None:
        backend.is_capture_live = True
        call(context)
        backend.is_capture_live = False

    backend.in_trial = pin
    call(context)
    assert context.drain(LONG)
    call(context)
    assert backend.runs == [FIRST] * 3
    call(later())
    assert backend.runs[-1] == FAST
    context.unpin()
    call(context)
    assert backend.runs[-1] == FAST


def test_the_winner_is_used_by_every_layout_and_the_plans_of_others_stay(
    context: TuningContext, backend: Any, problem: GemmProblem
) -> None:
    other = GemmProblem(dtype=problem.dtype, m=9, n=9, k=9, device="0")
    context.override(*signature_of(other), SLOW)
    plans = context.plans
    for key, posed in (("one", problem), ("two", problem), ("other", other)):
        context.keep(plans, key, context.resolve(posed, backend))
    assert set(context.plans) == {"one", "two", "other"}
    assert context.drain(LONG)
    assert set(context.plans) == {"other"}
    assert set(plans) == {"one", "two", "other"}


def test_what_was_resolved_before_the_swap_is_not_kept_after_it(
    context: TuningContext, backend: Any, problem: GemmProblem
) -> None:
    plans = context.plans
    resolved = context.resolve(problem, backend)
    context.keep(plans, "warm", resolved)
    assert context.drain(LONG)
    context.keep(plans, "key", resolved)
    assert context.plans == {}
