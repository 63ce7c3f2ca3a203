"""What is not settled is kept too, on a device that captures, and asks before each run whether a capture is live."""

import threading
from typing import Any

import pytest

from tensorplay.errors import LaunchError
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.resolved import Resolved
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
STREAM = 0x50


class DeviceBackend(ScriptedBackend):
    """A scripted backend whose plans take operands as those of a device do, and which remembers the streams asked."""

    def __init__(self) -> None:
        super().__init__({FIRST: 1.0, FAST: 0.5, SLOW: 2.0})
        self.asked: list[int | None] = []
        self.first_choices = 0
        self.refused: int | None = None

    def is_capturing(self, stream: int | None, device: str | None = None) -> bool:
        assert device == "0"
        self.asked.append(stream)
        if stream is not None and stream == self.refused:
            raise LaunchError("no such stream")
        return super().is_capturing(stream, device)

    def first_choice(self, problem: GemmProblem) -> Any:
        self.first_choices += 1
        return super().first_choice(problem)

    def _plan(self, problem: GemmProblem, kernel: str) -> Any:
        plan = super()._plan(problem, kernel)

        def run(*operands: Any) -> Any:
            if not isinstance(operands[0], int):
                return plan.run(*operands)
            if kernel in self.broken:
                raise LaunchError(f"{kernel} fails by script")
            self.runs.append(kernel)
            return operands[2]

        return type(plan)(problem, kernel, run)


@pytest.fixture
def device() -> DeviceBackend:
    return DeviceBackend()


@pytest.fixture
def context(make_context: Any, device: DeviceBackend) -> TuningContext:
    made: TuningContext = make_context(on=device)
    made.tuning_disable()
    return made


def call(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend, *, key: str = "key", stream: int = STREAM
) -> Resolved:
    """Run as an operation on a device does, its fake operands being integers, with a scale behind the stream."""
    operands = (1, 2, 3, 0, 0, 1.0, 0.0, stream, 9)
    plans = context.plans
    resolved = plans.get(key)
    if resolved is None:
        resolved = context.resolve(problem, device, stream)
        context.keep(plans, key, resolved)
    else:
        resolved.tally.calls += 1
    try:
        resolved.run(*operands)
    except Exception as error:  # noqa: BLE001 - as the operations do
        context.recover(resolved, error, *operands)
    return resolved


def test_a_miss_with_tuning_off_is_decided_once_and_asks_about_its_stream_each_time(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend
) -> None:
    for _ in range(5):
        call(context, problem, device)
    assert device.runs == [FIRST] * 5
    assert device.first_choices == 1
    assert set(device.asked) == {STREAM}
    assert len(device.asked) >= 5
    stats = context.stats()
    assert (stats["first_choice"], stats["untuned"], stats["pinned"]) == (5, 1, 0)


def test_a_call_under_capture_leaves_it_and_is_pinned(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend
) -> None:
    call(context, problem, device)
    device.is_capture_live = True
    call(context, problem, device)
    call(context, problem, device)
    device.is_capture_live = False
    context.tuning_enable()
    call(context, problem, device)
    assert device.runs == [FIRST] * 4
    assert context.explain(*signature_of(problem))["pinned"]
    stats = context.stats()
    assert (stats["first_choice"], stats["untuned"], stats["pinned"]) == (4, 1, 1)
    assert device.trials == []


def test_once_pinned_nothing_is_asked_any_more(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend
) -> None:
    call(context, problem, device)
    device.is_capture_live = True
    call(context, problem, device)
    call(context, problem, device)
    device.asked.clear()
    kept = call(context, problem, device)
    assert kept.plan is not None
    assert kept.run is kept.plan.run
    assert device.asked == []


def test_every_layout_of_a_pinned_signature_is_decided_anew_and_others_stay(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend
) -> None:
    other = GemmProblem(dtype=problem.dtype, m=9, n=9, k=9, device="0")
    first, second = (call(context, problem, device, key=key) for key in ("one", "two"))
    third = call(context, other, device, key="other")
    device.is_capture_live = True
    call(context, problem, device, key="one")
    assert context.plans == {"other": third}
    device.is_capture_live = False
    assert call(context, problem, device, key="two") is not second
    assert first.signature == second.signature


def test_turning_tuning_on_measures_what_was_kept(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend
) -> None:
    call(context, problem, device)
    context.tuning_enable()
    call(context, problem, device)
    call(context, problem, device)
    assert device.runs == [FIRST, FAST, FAST]


def test_a_stream_that_cannot_be_asked_about_goes_the_long_way(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend, caplog: pytest.LogCaptureFixture
) -> None:
    call(context, problem, device)
    device.refused = 0x66
    call(context, problem, device, stream=0x66)
    assert device.runs == [FIRST, FIRST]
    assert [record.msg for record in caplog.records] == [
        "the tuned choice for %s could not be found; the first choice runs (failure %d of its kind)"
    ]
    caplog.clear()


def test_a_first_choice_that_fails_tells_its_own_error(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend
) -> None:
    call(context, problem, device)
    device.broken = {FIRST}
    with pytest.raises(LaunchError, match="by script"):
        call(context, problem, device)
    assert context.stats()["fallback"] == 0


def test_a_winner_that_appeared_meanwhile_and_fails_under_capture_falls_back(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend
) -> None:
    kept = call(context, problem, device)
    context.override(*signature_of(problem), FAST)
    device.broken = {FAST}
    device.is_capture_live = True
    kept.run(1, 2, 3, 0, 0, 1.0, 0.0, STREAM)
    assert device.runs == [FIRST, FIRST]
    assert context.stats()["fallback"] == 1


def test_threads_that_meet_a_capture_at_once_count_every_call(
    context: TuningContext, problem: GemmProblem, device: DeviceBackend
) -> None:
    call(context, problem, device)
    gate = threading.Barrier(4)

    def together() -> None:
        gate.wait()
        for turn in range(200):
            device.is_capture_live = turn % 3 == 0
            call(context, problem, device)

    threads = [threading.Thread(target=together) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = context.stats()
    assert stats["first_choice"] == len(device.runs) == 801
    assert stats["pinned"] == 1


def test_with_the_feature_off_what_ran_under_a_capture_is_not_kept(make_context: Any, problem: GemmProblem) -> None:
    device = DeviceBackend()
    context = make_context({}, on=device)
    device.is_capture_live = True
    assert not call(context, problem, device).cacheable
    assert context.plans == {}


def test_the_ceiling_of_scratch_memory_is_told_only_where_it_is_another(make_context: Any) -> None:
    context = make_context({"TP_TUNABLEOP_WORKSPACE_MIB": "32"})
    told = [context.workspace_mib]
    with context.configure(workspace_mib=64):
        told.append(context.workspace_mib)
    told.append(context.workspace_mib)
    assert told == [None, 64, None]
    assert make_context({"TP_TUNABLEOP_WORKSPACE_MIB": "0"}).workspace_mib == 0
