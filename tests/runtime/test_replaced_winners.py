"""What is said of a winner that is not the one that was measured here, and what is done for one that does not run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import TensorPlayWarning
from tensorplay.gemm import DEFAULT, GemmProblem, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
ON = {"TP_TUNABLEOP_ENABLED": "1"}
MakeContext = Callable[..., TuningContext]


def read_instead(context: TuningContext, directory: Path, problem: GemmProblem, kernel: str, time_ms: str) -> None:
    validators = "".join(f"Validator,{name},{value}\n" for name, value in context.get_validators())
    op, params = signature_of(problem)
    path = directory / "other.csv"
    path.write_text(f"{validators}{op},{params},{kernel},{time_ms}\n")
    assert context.read_file(str(path), overwrite=True)


class TestTheEvidenceOfThisProcess:
    @pytest.mark.parametrize(("kernel", "time_ms"), [(SLOW, "0.1"), (FAST, "0.25"), (DEFAULT, "0.0")])
    def test_says_nothing_of_a_winner_that_a_file_put_in_its_place(
        self, context: TuningContext, call: Any, problem: GemmProblem, tmp_path: Path, kernel: str, time_ms: str
    ) -> None:
        signature = signature_of(problem)
        call(context)
        assert context.explain(*signature)["verdict"] == "winner"
        assert context.first_choices([signature]) == {signature: 1.0}
        read_instead(context, tmp_path, problem, kernel, time_ms)
        told = context.explain(*signature)
        assert (told["kernel"], told["time_ms"], told["origin"]) == (kernel, float(time_ms), "file")
        assert {told[key] for key in ("verdict", "winner", "winner_ms", "first_choice_ms")} == {None}
        assert context.first_choices([signature]) == {}

    def test_is_told_again_when_the_winner_is_back(
        self, context: TuningContext, call: Any, problem: GemmProblem, tmp_path: Path
    ) -> None:
        signature = signature_of(problem)
        call(context)
        read_instead(context, tmp_path, problem, SLOW, "0.1")
        read_instead(context, tmp_path, problem, FAST, "0.5")
        assert context.explain(*signature)["winner"] == FAST
        assert context.first_choices([signature]) == {signature: 1.0}

    def test_makes_room_for_what_the_file_s_own_explanations_say(
        self, make_context: MakeContext, call: Any, problem: GemmProblem, tmp_path: Path
    ) -> None:
        there = tmp_path / "there"
        there.mkdir()
        other = ScriptedBackend({FIRST: 1.0, SLOW: 0.75})
        call(TuningContext(environ=ON, directory=there, backends={"0": other}), on=other)
        context, signature = make_context(), signature_of(problem)
        call(context)
        assert context.read_file(str(there / "tunableop_results0.csv"), overwrite=True)
        told = context.explain(*signature)
        assert (told["winner"], told["winner_ms"]) == (SLOW, 0.75)
        assert context.first_choices([signature]) == {signature: 1.0}


def test_explaining_a_signature_meets_no_device(make_context: MakeContext, call: Any, problem: GemmProblem) -> None:
    call(make_context())
    context = make_context()
    assert context.explain(*signature_of(problem))["winner"] == FAST
    assert context.results_files() == []


class TestTuningOnDemand:
    def test_replaces_a_winner_that_does_not_run_in_memory_and_file(
        self, make_context: MakeContext, call: Any, problem: GemmProblem, tmp_path: Path
    ) -> None:
        call(make_context())
        poorer = ScriptedBackend({FIRST: 1.0, SLOW: 0.75})
        context = make_context(on=poorer)
        assert context.tune(problem)
        assert [each.kernel for each in context.recorded()] == [SLOW]
        assert FAST not in (tmp_path / "tunableop_results0.csv").read_text()
        assert [(each.kernel, each.healed is not None) for each in context.get_rejections()] == [(FAST, True)]
        assert context.tune(problem)
        assert len(poorer.trials) == 1

    @pytest.mark.parametrize("kernel", [DEFAULT, FIRST, SLOW])
    def test_measures_nothing_where_a_winner_runs(
        self, context: TuningContext, problem: GemmProblem, backend: ScriptedBackend, kernel: str
    ) -> None:
        context.override(*signature_of(problem), kernel)
        assert context.tune(problem)
        assert backend.trials == []
        assert [each.kernel for each in context.recorded()] == [kernel]

    def test_leaves_a_pinned_winner_and_says_that_none_runs(
        self, context: TuningContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
    ) -> None:
        call(context)
        context.pin_winner(*signature_of(problem))
        backend.unavailable[FAST] = "gone"
        assert not context.tune(problem)
        assert len(backend.trials) == 1
        assert [each.kernel for each in context.recorded()] == [FAST]

    def test_that_fails_keeps_a_stale_winner_and_says_that_none_runs(
        self, context: TuningContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
    ) -> None:
        call(context)
        backend.unavailable[FAST] = "gone"
        backend.trial_error = RuntimeError("no device")
        with pytest.warns(TensorPlayWarning, match="no device"):
            assert not context.tune(problem)
        assert [each.kernel for each in context.recorded()] == [FAST]
