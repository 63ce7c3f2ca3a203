"""In the background: stale winners, failures, disturbances, spent budgets, and being called off."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import LaunchError, SettingError, TensorPlayWarning
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.background import Placed
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ManualClock, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
LATER = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_MODE": "background"}
LONG = 20.0


@pytest.fixture
def backend(make_patient: Any) -> Any:
    return make_patient()


@pytest.fixture
def context(later: Any) -> TuningContext:
    made: TuningContext = later()
    return made


def hold(context: TuningContext, call: Any, backend: Any) -> None:
    """Let the measurement begin, and not end."""
    backend.is_open.clear()
    call(context)
    assert backend.began.acquire(timeout=LONG)


def test_a_stale_entry_is_healed_later(
    context: TuningContext, later: Any, call: Any, backend: Any, tmp_path: Path
) -> None:
    call(context)
    assert context.drain(LONG)
    backend.unavailable[FAST] = "not in this library"
    other = later()
    call(other)
    assert other.drain(LONG)
    call(other)
    assert backend.runs == [FIRST, FIRST, FIRST]
    assert [(r.kernel, r.healed) for r in other.get_rejections()] == [(FAST, FIRST)]
    assert FAST not in (tmp_path / "tunableop_results0.csv").read_text()
    assert other.stats()["rejected"] == 1


def test_the_seconds_of_the_process_are_kept_to(later: Any, call: Any, backend: Any, problem: GemmProblem) -> None:
    context = later({**LATER, "TP_TUNABLEOP_TOTAL_TUNING_SECONDS": "2"}, clock=ManualClock())
    backend.idle = False
    call(context)
    context._spent_seconds = 2.0
    backend.idle = True
    assert context.drain(LONG)
    assert backend.trials == []
    assert "2 s of tuning" in str(context.explain(*signature_of(problem))["not_measured"])
    call(context)
    assert context.get_untuned() == [signature_of(problem)]
    assert context.stats()["queued"] == 1


def test_a_failure_is_counted_as_in_a_blocking_measurement(
    context: TuningContext, call: Any, backend: Any, problem: GemmProblem
) -> None:
    told: list[str] = []
    context.listeners.add(lambda event, _: told.append(event))
    backend.trial_error = MemoryError("no room")
    call(context)
    with pytest.warns(TensorPlayWarning, match="no room"):
        context.drain(LONG)
    call(context)
    assert context.explain(*signature_of(problem))["not_measured"] == "no room"
    assert context.get_untuned() == [signature_of(problem)]
    assert [event for event in told if event != "file"] == ["queued", "tuning_started", "tuning_failed", "untuned"]
    assert backend.runs == [FIRST, FIRST]


def test_what_a_capture_made_fail_is_measured_again(context: TuningContext, call: Any, backend: Any) -> None:
    failures = [LaunchError("operation not permitted when stream is capturing")] * 2

    def fail() -> None:
        if failures:
            raise failures.pop()

    backend.in_trial = fail
    call(context)
    assert context.drain(LONG)
    assert [row[2] for row in context.get_results()] == [FAST]
    assert len(backend.trials) == 3


def test_what_fails_every_time_is_given_up(
    context: TuningContext, call: Any, backend: Any, problem: GemmProblem
) -> None:
    backend.trial_error = LaunchError("lost")
    call(context)
    with pytest.warns(TensorPlayWarning, match="lost"):
        context.drain(LONG)
    assert context.explain(*signature_of(problem))["not_measured"] == "lost"
    assert len(backend.threads) == 3


@pytest.mark.parametrize("fails", ["beside_captures", "is_idle"])
@pytest.mark.parametrize("times", [1, 9])
@pytest.mark.filterwarnings("ignore::tensorplay.errors.TensorPlayWarning")
def test_what_nobody_foresaw_is_queued_again_by_later_calls_but_not_for_ever(
    context: TuningContext,
    call: Any,
    backend: Any,
    problem: GemmProblem,
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
    times: int,
) -> None:
    errors: list[Exception] = [MemoryError("no room")] * times
    told: list[str] = []
    context.listeners.add(lambda event, _: told.append(event))
    beside, is_idle = backend.beside_captures, backend.is_idle

    @contextmanager
    def beside_captures() -> Iterator[None]:
        if errors:
            raise errors.pop()
        with beside():
            yield

    def idle(device: str) -> bool:
        if errors:
            raise errors.pop()
        return bool(is_idle(device))

    monkeypatch.setattr(backend, fails, beside_captures if fails == "beside_captures" else idle)
    for _ in range(6):
        plans = context.plans
        if "key" not in plans:
            context.keep(plans, "key", context.resolve(problem, backend))
        assert context.drain(LONG)
    attempts = min(times, 3)
    assert told.count("tuning_failed") == attempts
    assert context.stats()["queued"] == min(times + 1, 3)
    why = context.explain(*signature_of(problem))["not_measured"]
    if times == 1:
        assert [row[2] for row in context.get_results()] == [FAST]
        assert why is None
    else:
        assert why == "no room"
        assert context.get_untuned() == [signature_of(problem)]
        assert len(errors) == 6
        errors.clear()
        context.set_max_tuning_samples(50)
        call(context)
        assert context.drain(LONG)
        assert [row[2] for row in context.get_results()] == [FAST]


@pytest.mark.parametrize(("disturb", "trials"), [(True, 3), (False, 1)])
def test_a_draw_that_other_work_may_have_caused_is_measured_again(
    later: Any, call: Any, make_patient: Any, disturb: bool, trials: int
) -> None:
    device = make_patient({FIRST: 1.0, FAST: 0.97})
    context = later({**LATER, "TP_TUNABLEOP_MIN_GAIN": "0.05"}, on=device)
    if disturb:
        # Another product is made meanwhile.
        device.in_trial = lambda: context.fixed(None).tally and None
    call(context, on=device)
    assert context.drain(LONG)
    assert len(device.trials) == trials
    assert [row[2] for row in context.get_results()] == [FIRST]


def test_a_kernel_set_by_hand_meanwhile_stays(
    context: TuningContext, call: Any, backend: Any, problem: GemmProblem
) -> None:
    hold(context, call, backend)
    context.override(*signature_of(problem), SLOW)
    backend.is_open.set()
    assert context.drain(LONG)
    call(context)
    assert backend.runs[-1] == SLOW
    assert [row[2] for row in context.get_results()] == [SLOW]
    assert context.stats()["measured"] == 0


@pytest.mark.parametrize(
    "turn_off",
    [
        lambda context: context.disable(),
        lambda context: context.tuning_disable(),
        lambda context: context.change_setting("mode", "blocking"),
        lambda context: context.close(),
    ],
)
@pytest.mark.parametrize("is_measuring", [False, True])
def test_turning_it_off_calls_everything_off(
    context: TuningContext, call: Any, backend: Any, turn_off: Any, is_measuring: bool
) -> None:
    if is_measuring:
        hold(context, call, backend)
        threading.Timer(0.05, backend.is_open.set).start()
    else:
        backend.idle = False
        call(context)
    turn_off(context)
    assert context.drain(LONG)
    assert context.get_results() == []
    assert context.stats()["measured"] == 0


def test_another_setting_leaves_the_queue_alone(context: TuningContext, call: Any, backend: Any) -> None:
    backend.idle = False
    call(context)
    context.set_max_tuning_samples(50)
    backend.idle = True
    assert context.drain(LONG)
    assert context.stats()["measured"] == 1


def test_a_call_that_is_not_taken_counts_as_untuned_and_is_asked_again(
    context: TuningContext, call: Any, backend: Any, problem: GemmProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(context.background, "put", lambda _: Placed.REFUSED)
        assert not context.resolve(problem, backend).cacheable
    assert context.get_untuned() == [signature_of(problem)]
    assert context.stats()["queued"] == 0
    call(context)
    assert context.drain(LONG)
    assert context.stats()["measured"] == 1


def test_forgetting_lets_it_be_measured_again(
    context: TuningContext, call: Any, backend: Any, problem: GemmProblem
) -> None:
    call(context)
    assert context.drain(LONG)
    context.forget(*signature_of(problem))
    call(context)
    assert backend.runs == [FIRST, FIRST]
    assert context.drain(LONG)
    assert context.stats()["measured"] == 2


def test_blocking_measures_within_the_call_and_has_nothing_to_drain(later: Any, call: Any, backend: Any) -> None:
    context = later({"TP_TUNABLEOP_ENABLED": "1"})
    call(context)
    assert backend.runs == [FAST]
    assert context.drain()
    assert context.stats()["queued"] == 0


@pytest.mark.parametrize("timeout", [-1, -0.1, float("nan")])
def test_a_timeout_that_is_none_is_refused(context: TuningContext, timeout: float) -> None:
    with pytest.raises(SettingError, match="allowed: seconds from 0 up"):
        context.drain(timeout)


def test_a_listener_may_drain_and_does_not_wait_for_itself(context: TuningContext, call: Any, backend: Any) -> None:
    answers: list[bool] = []
    context.listeners.add(lambda event, _: answers.append(context.drain(LONG)) if event == "tuned" else None)
    call(context)
    assert context.drain(LONG)
    assert answers == [False]
