"""Under a graph capture nothing is measured, and what ran there keeps running."""

from pathlib import Path
from typing import Any

import pytest

from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)


def test_a_miss_under_capture_is_pinned_so_that_eager_reruns_run_the_same(
    context: TuningContext, call: Any, backend: ScriptedBackend
) -> None:
    backend.is_capture_live = True
    call(context)
    backend.is_capture_live = False
    call(context)
    assert backend.runs == [FIRST, FIRST]
    assert backend.trials == []
    assert context.stats()["pinned"] == 1


@pytest.mark.parametrize(
    "undo",
    [
        lambda context, _: context.enable(),
        lambda context, _: context.read_file(),
        lambda context, _: context.tuning_enable(),
        lambda context, signature: context.override(*signature, FAST),
        lambda context, signature: context.forget(*signature),
        lambda context, _: context.set_max_tuning_samples(50),
    ],
)
@pytest.mark.filterwarnings("ignore::tensorplay.errors.ResultsFileWarning")
def test_nothing_but_unpin_undoes_a_pin(
    context: TuningContext, call: Any, backend: ScriptedBackend, problem: GemmProblem, undo: Any
) -> None:
    backend.is_capture_live = True
    call(context)
    backend.is_capture_live = False
    undo(context, signature_of(problem))
    call(context)
    assert backend.runs == [FIRST, FIRST]
    assert context.unpin() == 1
    call(context)
    assert backend.runs[-1] == FAST


def test_a_recorded_winner_is_used_under_capture(context: TuningContext, call: Any, backend: ScriptedBackend) -> None:
    call(context)
    backend.is_capture_live = True
    call(context)
    assert backend.runs == [FAST, FAST]
    assert context.stats()["pinned"] == 0


def test_a_stale_entry_under_capture_is_pinned_and_rejected(
    make_context: Any, call: Any, backend: ScriptedBackend
) -> None:
    call(make_context())
    backend.unavailable[FAST] = "not in this library"
    second = make_context()
    backend.is_capture_live = True
    call(second)
    backend.is_capture_live = False
    call(second)
    assert backend.runs == [FAST, FIRST, FIRST]
    assert [(r.kernel, r.reason) for r in second.get_rejections()] == [(FAST, "not in this library")]


def test_a_miss_that_ran_eagerly_is_still_pinned_when_it_is_captured(
    context: TuningContext, call: Any, backend: ScriptedBackend
) -> None:
    context.tuning_disable()
    call(context)
    backend.is_capture_live = True
    call(context)
    backend.is_capture_live = False
    context.tuning_enable()
    call(context)
    assert backend.runs == [FIRST] * 3
    assert backend.trials == []


def test_with_the_feature_off_a_capture_selects_nothing(make_context: Any, call: Any) -> None:
    device = ScriptedBackend({FIRST: 1.0, SLOW: 0.5}, library=2)
    device.is_capture_live = True
    context = make_context({}, on=device)
    call(context, on=device)
    assert device.runs == [FIRST]
    device.is_capture_live = False
    call(context, on=device)
    assert device.runs == [FIRST, SLOW]


def test_a_miss_under_capture_is_logged_as_untuned_when_recording(
    context: TuningContext, call: Any, backend: ScriptedBackend, tmp_path: Path, problem: GemmProblem
) -> None:
    context.record_untuned_enable()
    backend.is_capture_live = True
    call(context)
    assert (tmp_path / "tunableop_untuned0.csv").read_text() == ",".join(signature_of(problem)) + "\n"
