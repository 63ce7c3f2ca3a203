"""A recorded winner that no longer runs is reported, replaced and rewritten; meanwhile values stay right."""

from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import KernelIdError, KernelUnavailableError, SignatureError
from tensorplay.gemm import GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
GONE = scripted_kernel(9)


@pytest.fixture
def stale(make_context: Any, problem: GemmProblem, tmp_path: Path) -> Path:
    """A file of this build whose winner this build does not have."""
    path: Path = tmp_path / "tunableop_results0.csv"
    context = make_context()
    assert context.write_file()
    with path.open("a") as file:
        file.write(",".join((*signature_of(problem), GONE, "0.1")) + "\n")
    return path


def test_it_is_measured_again_and_replaced_in_memory_and_file(context: TuningContext, call: Any, stale: Path) -> None:
    call(context)
    assert [row[2] for row in context.get_results()] == [FAST]
    text = stale.read_text()
    assert GONE not in text
    assert text.count(FAST) == 1
    (rejection,) = context.get_rejections()
    assert (rejection.kernel, rejection.healed) == (GONE, FAST)
    assert "is in no script" in rejection.reason


def test_what_healed_is_not_written_again_when_another_process_has_replaced_it_since(
    make_context: Any, call: Any, stale: Path, problem: GemmProblem
) -> None:
    healer, other = make_context(), make_context()
    call(healer)
    other.read_file()
    other.override(*signature_of(problem), SLOW)
    healer.close()
    assert [row[2] for row in rows_on_file(make_context)] == [SLOW]


def rows_on_file(make_context: Any) -> list[Any]:
    context = make_context()
    context.read_file()
    return list(context.get_results())


def test_with_tuning_off_the_first_choice_runs_and_it_heals_once_tuning_is_on(
    context: TuningContext, call: Any, stale: Path, backend: ScriptedBackend
) -> None:
    context.tuning_disable()
    call(context)
    call(context)
    assert backend.runs == [FIRST, FIRST]
    assert context.stats()["rejected"] == 1
    assert context.get_untuned() == []
    assert GONE in stale.read_text()
    context.tuning_enable()
    call(context)
    assert GONE not in stale.read_text()


def test_a_winner_that_fails_when_it_runs_falls_back_for_that_call_and_is_stale_from_then_on(
    make_context: Any, call: Any, backend: ScriptedBackend, tmp_path: Path
) -> None:
    call(make_context())
    backend.broken.add(FAST)
    second = make_context()
    call(second)
    assert second.stats()["fallback"] == 1
    assert second.stats()["rejected"] == 1
    assert "fails by script" in second.get_rejections()[0].reason
    call(second)
    assert second.stats()["measured"] == 1
    assert [row[2] for row in second.get_results()] == [FIRST]
    assert FAST not in (tmp_path / "tunableop_results0.csv").read_text()


def test_a_kernel_that_failed_takes_no_part_when_its_signature_is_measured_again(
    make_context: Any, call: Any, backend: ScriptedBackend
) -> None:
    call(make_context())
    backend.broken.add(FAST)
    second = make_context()
    call(second)
    backend.broken.clear()
    call(second)
    assert [row[2] for row in second.get_results()] == [FIRST]


def test_operands_that_no_kernel_can_take_are_not_the_winner_s_fault(
    context: TuningContext, call: Any, backend: ScriptedBackend, problem: GemmProblem
) -> None:
    call(context)
    resolved = context.resolve(problem, backend)
    error = ValueError("output array is read-only")
    with pytest.raises(ValueError, match="mismatch"):
        context.recover(resolved, error, *_unfit())
    assert context.stats()["fallback"] == 0
    assert context.get_rejections() == []


def _unfit() -> tuple[Any, Any, None]:
    import numpy as np

    return np.ones((2, 3)), np.ones((2, 3)), None


class TestOverride:
    def test_records_a_kernel_in_memory_and_file(
        self, context: TuningContext, call: Any, backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path
    ) -> None:
        context.override(*signature_of(problem), SLOW)
        call(context)
        assert backend.runs == [SLOW]
        assert SLOW in (tmp_path / "tunableop_results0.csv").read_text()
        assert context.explain(*signature_of(problem))["origin"] == "override"

    def test_with_default_runs_the_first_choice_as_a_replay(
        self, context: TuningContext, call: Any, backend: ScriptedBackend, problem: GemmProblem
    ) -> None:
        context.override(*signature_of(problem), "Default")
        call(context)
        assert backend.runs == [FIRST]
        assert context.stats()["replayed"] == 1

    def test_takes_effect_at_once_on_a_signature_that_ran(
        self, context: TuningContext, call: Any, backend: ScriptedBackend, problem: GemmProblem
    ) -> None:
        call(context)
        context.override(*signature_of(problem), SLOW)
        call(context)
        assert backend.runs == [FAST, SLOW]

    def test_lets_a_kernel_that_failed_be_tried_again(
        self, make_context: Any, call: Any, backend: ScriptedBackend, problem: GemmProblem
    ) -> None:
        call(make_context())
        backend.broken.add(FAST)
        second = make_context()
        call(second)
        backend.broken.clear()
        second.override(*signature_of(problem), FAST)
        call(second)
        assert backend.runs[-1] == FAST

    @pytest.mark.parametrize(
        ("op", "params", "kernel", "error"),
        [
            ("GemmTunableOp_Float32", "nonsense", FAST, SignatureError),
            ("Nonsense", "taN_m4_n3_k5_bias0_dev0", FAST, SignatureError),
            ("GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev0", "fast please", KernelIdError),
            ("GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev0", GONE, KernelUnavailableError),
            ("GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev7", FAST, KernelUnavailableError),
        ],
    )
    def test_refuses_what_cannot_run_and_changes_nothing(
        self, context: TuningContext, tmp_path: Path, op: str, params: str, kernel: str, error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            context.override(op, params, kernel)
        assert context.get_results() == []
        assert list(tmp_path.iterdir()) == []


class TestForget:
    def test_drops_a_winner_from_memory_and_file_so_that_it_is_measured_again(
        self, context: TuningContext, call: Any, backend: ScriptedBackend, problem: GemmProblem, tmp_path: Path
    ) -> None:
        call(context)
        assert context.forget(*signature_of(problem))
        assert context.get_results() == []
        assert FAST not in (tmp_path / "tunableop_results0.csv").read_text()
        call(context)
        assert len(backend.trials) == 2

    def test_works_on_a_file_that_was_not_read_yet(
        self, make_context: Any, call: Any, problem: GemmProblem, tmp_path: Path
    ) -> None:
        call(make_context())
        assert make_context().forget(*signature_of(problem))
        assert FAST not in (tmp_path / "tunableop_results0.csv").read_text()

    def test_of_what_is_not_there_says_so(self, context: TuningContext, problem: GemmProblem) -> None:
        assert not context.forget(*signature_of(problem))
