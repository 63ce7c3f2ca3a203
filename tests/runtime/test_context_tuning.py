"""A miss is measured once, recorded at once, and replayed by every later process."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import SignatureError, TensorPlayWarning
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ManualClock, ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
ON = {"TP_TUNABLEOP_ENABLED": "1"}


def test_the_fastest_kernel_wins_and_runs_the_call_that_measured(
    context: TuningContext, call: Any, backend: ScriptedBackend
) -> None:
    call(context)
    call(context)
    assert backend.runs == [FAST, FAST]
    assert [row[2] for row in context.get_results()] == [FAST]
    assert context.stats()["measured"] == 1
    assert context.stats()["replayed"] == 1


def test_a_winner_is_in_the_file_as_soon_as_the_call_returns(
    context: TuningContext, call: Any, tmp_path: Path, problem: GemmProblem
) -> None:
    call(context)
    lines = (tmp_path / "tunableop_results0.csv").read_text().splitlines()
    assert lines[-1].startswith(",".join((*signature_of(problem), FAST, "0.5")))
    assert lines[0] == "Validator,TP_TUNABLEOP_FORMAT,1"


def test_a_second_process_replays_and_measures_nothing(make_context: Any, call: Any, backend: ScriptedBackend) -> None:
    call(make_context())
    second = make_context()
    call(second)
    assert backend.runs == [FAST, FAST]
    assert len(backend.trials) == 1
    assert (second.stats()["measured"], second.stats()["replayed"]) == (0, 1)


def test_the_file_is_read_at_the_first_product_and_never_before(make_context: Any, call: Any) -> None:
    early = make_context()
    call(make_context())
    assert early.get_results() == []
    call(early)
    assert early.stats()["measured"] == 0
    assert len(early.get_results()) == 1


def test_the_first_choice_is_recorded_by_its_own_name_where_nothing_beats_it(make_context: Any, call: Any) -> None:
    device = ScriptedBackend({FIRST: 1.0, SLOW: 2.0})
    context = make_context(on=device)
    call(context, on=device)
    assert [row[2] for row in context.get_results()] == [FIRST]


def test_a_gain_below_min_gain_is_not_worth_another_kernel(make_context: Any, call: Any) -> None:
    device = ScriptedBackend({FIRST: 1.0, FAST: 0.97})
    context = make_context({**ON, "TP_TUNABLEOP_MIN_GAIN": "0.05"}, on=device)
    call(context, on=device)
    assert [row[2] for row in context.get_results()] == [FIRST]


def test_a_fast_kernel_that_is_wrong_never_wins(context: TuningContext, call: Any, backend: ScriptedBackend) -> None:
    backend.wrong.add(FAST)
    call(context)
    assert [row[2] for row in context.get_results()] == [FIRST]
    candidates = context.explain(*context.get_results()[0][:2])["candidates"]
    assert isinstance(candidates, list)
    dropped = {row["kernel"]: row["dropped"] for row in candidates}
    assert "wrong result" in dropped[FAST]


def test_a_candidate_that_does_not_launch_costs_only_itself(
    context: TuningContext, call: Any, backend: ScriptedBackend
) -> None:
    backend.broken.add(FAST)
    call(context)
    assert [row[2] for row in context.get_results()] == [FIRST]


def test_threads_that_miss_the_same_signature_measure_it_once(
    context: TuningContext, call: Any, backend: ScriptedBackend
) -> None:
    gate = threading.Barrier(8)

    def together() -> None:
        gate.wait()
        call(context)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(together) for _ in range(8)]:
            future.result()
    assert len(backend.trials) == 1
    assert context.stats()["measured"] == 1
    assert context.stats()["replayed"] == 7


@pytest.mark.parametrize("error", [MemoryError("no room"), OSError("gone"), RuntimeError("odd"), KeyError("odder")])
def test_a_measurement_that_fails_leaves_the_first_choice_and_is_not_tried_again(
    context: TuningContext, call: Any, backend: ScriptedBackend, problem: GemmProblem, error: Exception
) -> None:
    backend.trial_error = error
    with pytest.warns(TensorPlayWarning, match="not measured, the library's first choice runs"):
        call(context)
    call(context)
    assert backend.runs == [FIRST, FIRST]
    assert context.get_results() == []
    assert context.explain(*signature_of(problem))["not_measured"] == str(error)
    assert context.get_untuned() == [signature_of(problem)]


def test_sources_that_offer_nothing_are_told_and_nothing_is_recorded(
    context: TuningContext, call: Any, backend: ScriptedBackend
) -> None:
    with (
        context.configure(sources="numpy"),
        pytest.warns(
            TensorPlayWarning, match="the sources numpy offer no candidate here; those of this device are scripted"
        ),
    ):
        call(context)
    assert context.get_results() == []
    call(context)
    assert [row[2] for row in context.get_results()] == [FAST]


def test_explaining_what_is_no_signature_is_an_error_and_not_an_empty_answer(context: TuningContext) -> None:
    with pytest.raises(SignatureError, match="nonsense"):
        context.explain("GemmTunableOp_Float32", "nonsense")


def test_a_failed_measurement_is_tried_again_after_a_setting_changed(
    context: TuningContext, call: Any, backend: ScriptedBackend
) -> None:
    backend.trial_error = MemoryError("no room")
    with pytest.warns(TensorPlayWarning, match="no room"):
        call(context)
    backend.trial_error = None
    context.set_max_tuning_duration(10)
    call(context)
    assert [row[2] for row in context.get_results()] == [FAST]


def test_a_process_stops_measuring_when_its_seconds_are_spent(
    make_context: Any, call: Any, backend: ScriptedBackend, problem: GemmProblem
) -> None:
    clock = ManualClock()
    context = make_context({**ON, "TP_TUNABLEOP_TOTAL_TUNING_SECONDS": "2"}, clock=clock)
    context._spent_seconds = 2.0
    call(context)
    assert backend.trials == []
    assert "2 s of tuning" in str(context.explain(*signature_of(problem))["not_measured"])
    with context.configure(total_tuning_seconds=0):
        call(context)
    assert len(backend.trials) == 1


def test_with_tuning_off_nothing_is_measured_and_it_can_be_turned_on_later(
    context: TuningContext, call: Any, backend: ScriptedBackend, problem: GemmProblem
) -> None:
    context.tuning_disable()
    call(context)
    call(context)
    assert context.get_untuned() == [signature_of(problem)]
    assert (context.stats()["untuned"], context.stats()["first_choice"]) == (1, 2)
    context.tuning_enable()
    call(context)
    assert backend.runs == [FIRST, FIRST, FAST]


def test_products_of_no_tunable_family_keep_their_fixed_dispatch(
    context: TuningContext, backend: ScriptedBackend, problem: GemmProblem
) -> None:
    batched = GemmProblem(dtype=problem.dtype, m=2, n=2, k=2, batch=3, device="0")
    resolved = context.resolve(batched, backend)
    assert resolved.plan is not None
    assert resolved.plan.kernel == FIRST
    assert backend.trials == []
    with context.configure(families="all"):
        assert context.resolve(batched, backend).signature == signature_of(batched)


class TestWithTheFeatureOff:
    def test_the_library_s_choices_are_timed_once_in_this_process_and_never_recorded(
        self, make_context: Any, call: Any, tmp_path: Path
    ) -> None:
        device = ScriptedBackend({FIRST: 1.0, SLOW: 0.5, FAST: 0.1}, library=2)
        context = make_context({}, on=device)
        call(context, on=device)
        call(context, on=device)
        assert device.runs == [SLOW, SLOW]
        assert len(device.trials) == 1
        assert context.stats()["selected_in_process"] == 2
        assert list(tmp_path.iterdir()) == []

    def test_selection_is_kept_apart_from_default(self, make_context: Any, call: Any, problem: GemmProblem) -> None:
        device = ScriptedBackend({FIRST: 1.0, SLOW: 0.5}, library=2)
        context = make_context({}, on=device)
        call(context, on=device)
        context.enable()
        context.override(*signature_of(problem), "Default")
        call(context, on=device)
        assert device.runs == [SLOW, FIRST]

    def test_no_file_is_read_and_nothing_is_untuned(self, make_context: Any, call: Any, tmp_path: Path) -> None:
        (tmp_path / "tunableop_results0.csv").write_text("what is this\n")
        context = make_context({"TP_TUNABLEOP_RECORD_UNTUNED": "1"})
        call(context)
        assert context.get_untuned() == []
        assert context.get_results() == []

    def test_a_selection_that_fails_leaves_the_first_choice(self, make_context: Any, call: Any) -> None:
        device = ScriptedBackend({FIRST: 1.0, SLOW: 0.5}, library=2)
        device.trial_error = MemoryError("no room")
        call(make_context({}, on=device), on=device)
        assert device.runs == [FIRST]
