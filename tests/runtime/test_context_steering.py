"""What people do to winners: pins hold against everything, overrides can be taken back, lists can be cleared."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import TensorPlayError
from tensorplay.gemm import GemmProblem, Signature, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
MakeContext = Callable[..., TuningContext]


def kernels(context: TuningContext) -> list[str]:
    return [kernel for _, _, kernel, _ in context.get_results()]


def test_a_pinned_winner_is_neither_forgotten_nor_overridden(
    context: TuningContext, call: Any, problem: GemmProblem
) -> None:
    signature = signature_of(problem)
    assert not context.pin_winner(*signature)
    call(context)
    assert context.pin_winner(*signature)
    for change in (
        lambda: context.forget(*signature),
        lambda: context.override(*signature, SLOW),
        lambda: context.measure_beside(problem, again=True),
        context.forget_all,
    ):
        with pytest.raises(TensorPlayError, match="pinned"):
            change()
    assert kernels(context) == [FAST]
    assert [each.pinned for each in context.recorded()] == [True]
    assert context.unpin_winner(*signature)
    assert not context.unpin_winner(*signature)
    assert context.forget(*signature)


def test_a_pinned_winner_is_not_overwritten_by_a_file(
    make_context: MakeContext, call: Any, problem: GemmProblem, tmp_path: Path
) -> None:
    context, signature = make_context(), signature_of(problem)
    call(context)
    path = tmp_path / "tunableop_results0.csv"
    data = path.read_bytes().replace(FAST.encode(), SLOW.encode())
    context.pin_winner(*signature)
    report = context.load_results("0", str(path), data, overwrite=True)
    assert (report.merged, report.replaced, report.kept, report.pinned) == (0, 0, 0, 1)
    other = tmp_path / "other.csv"
    other.write_bytes(data)
    context.read_file("other.csv", overwrite=True)
    assert kernels(context) == [FAST]
    context.unpin_winner(*signature)
    assert context.load_results("0", str(path), data).kept == 1
    assert context.load_results("0", str(path), data, overwrite=True).replaced == 1
    assert kernels(context) == [SLOW]
    assert [each.origin for each in context.recorded()] == ["file"]


def test_a_large_file_is_taken_as_a_small_one_is_and_noted_once(
    make_context: MakeContext, call: Any, problem: GemmProblem
) -> None:
    context, signature = make_context(), signature_of(problem)
    call(context)
    context.pin_winner(*signature)
    header = "".join(f"Validator,{name},{value}\n" for name, value in context.get_validators())
    op = signature.op

    def load(kernel: str, count: int, *, overwrite: bool) -> tuple[int, ...]:
        lines = [f"{op},taN_m{m}_n1_k1_bias0_dev0,{kernel},{m}.5\n" for m in range(1, count + 1)]
        early = f"{op},taN_m1_n1_k1_bias0_dev0,{FAST},0.25\n{op},{signature.params},{SLOW},1.0\n"
        revision = context.results_revision()
        data = (header + early + "".join(lines) + "what is this\n").encode()
        report = context.load_results("0", "large.csv", data, overwrite=overwrite)
        assert report.rejected == 1
        assert context.results_revision() - revision == bool(report.merged or report.replaced)
        return report.merged, report.replaced, report.kept, report.pinned

    assert load(FIRST, 1300, overwrite=False) == (1300, 0, 0, 1)
    assert load(SLOW, 1400, overwrite=False) == (100, 0, 1300, 1)
    assert load(SLOW, 1500, overwrite=True) == (100, 1300, 0, 1)
    assert load(SLOW, 1500, overwrite=True) == (0, 0, 0, 1)
    held = {params: (kernel, time_ms) for _, params, kernel, time_ms in context.get_results()}
    assert held.pop(signature.params)[0] == FAST
    assert held == {f"taN_m{m}_n1_k1_bias0_dev0": (SLOW, m + 0.5) for m in range(1, 1501)}


def test_a_pinned_winner_that_does_not_run_any_more_is_not_healed(
    make_context: MakeContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
) -> None:
    context = make_context()
    call(context)
    context.pin_winner(*signature_of(problem))
    backend.unavailable[FAST] = "gone"
    call(context)
    assert backend.runs[-1] == FIRST
    assert kernels(context) == [FAST]
    assert len(backend.trials) == 1
    assert [each.reason for each in context.get_rejections()] == ["gone"]
    context.unpin_winner(*signature_of(problem))
    call(context)
    assert kernels(context) == [FIRST]
    assert backend.trials[1:] == [problem]


def test_a_winner_that_is_pinned_while_it_is_measured_again_stays(
    make_context: MakeContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
) -> None:
    context = make_context()
    call(context)

    def pin(event: str, detail: Mapping[str, object]) -> None:
        if event == "tuning_started":
            context.pin_winner(*signature_of(problem))

    context.listeners.add(pin)
    assert not context.measure_beside(problem, again=True)
    assert kernels(context) == [FAST]
    assert len(backend.trials) == 2


def test_going_back_from_an_override_restores_what_was_measured(
    context: TuningContext, call: Any, problem: GemmProblem
) -> None:
    signature = signature_of(problem)
    call(context)
    with pytest.raises(TensorPlayError, match="no override"):
        context.withdraw_override(*signature)
    context.override(*signature, SLOW)
    context.override(*signature, FIRST)
    assert context.withdraw_override(*signature)
    assert kernels(context) == [FAST]
    assert [each.origin for each in context.recorded()] == ["measured here"]
    assert context.explain(*signature)["verdict"] == "winner"
    origins = [past.origin for past in context.past_winners(*signature)]
    assert origins == ["measured here", "override", "override", "measured here"]


def test_going_back_in_a_new_process_restores_what_its_explanation_tells(
    make_context: MakeContext, call: Any, problem: GemmProblem
) -> None:
    signature, before = signature_of(problem), make_context()
    call(before)
    before.override(*signature, SLOW)
    context = make_context()
    assert [(past.kernel, past.origin) for past in context.past_winners(*signature)] == [
        (FAST, "measured"),
        (SLOW, "file"),
    ]
    assert context.withdraw_override(*signature)
    assert kernels(make_context()) == []
    fresh = make_context()
    call(fresh)
    assert kernels(fresh) == [FAST]


def test_going_back_from_an_override_of_nothing_measured_forgets_it(
    context: TuningContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
) -> None:
    signature = signature_of(problem)
    context.override(*signature, SLOW)
    assert not context.withdraw_override(*signature)
    assert kernels(context) == []
    call(context)
    assert kernels(context) == [FAST]
    assert backend.trials == [problem]


def test_measuring_again_replaces_a_winner(
    context: TuningContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
) -> None:
    call(context)
    assert context.measure_beside(problem)
    assert len(backend.trials) == 1
    del backend._scripts[FAST]
    assert context.measure_beside(problem, again=True)
    assert kernels(context) == [FIRST]
    assert [past.origin for past in context.past_winners(*signature_of(problem))] == ["measured here"] * 2


def test_everything_is_forgotten_in_memory_and_file(
    make_context: MakeContext, call: Any, problem: GemmProblem, tmp_path: Path
) -> None:
    context = make_context()
    call(context)
    context.tune(GemmProblem(dtype=problem.dtype, m=9, n=3, k=5, device="0"))
    assert context.forget_all() == 2
    assert context.forget_all() == 0
    assert "lt_id" not in (tmp_path / "tunableop_results0.csv").read_text()
    assert (tmp_path / "tunableop_results0.explain.jsonl").read_text() == ""
    fresh = make_context()
    assert not fresh.read_file("x.csv")
    assert kernels(fresh) == []


def test_a_file_of_another_build_is_named_with_every_difference(
    make_context: MakeContext, call: Any, backend: ScriptedBackend, tmp_path: Path
) -> None:
    call(make_context())
    data = (tmp_path / "tunableop_results0.csv").read_bytes()
    other = make_context(on=ScriptedBackend({FIRST: 1.0}, version="2"))
    report = other.load_results("0", "x.csv", data)
    assert [(each.name, each.expected, each.found) for each in report.mismatches] == [("SCRIPTED_VERSION", "2", ("1",))]
    assert report.merged == 0
    other.load_results("0", "x.csv", b"\n# nothing\n")
    with pytest.warns(UserWarning, match="another build"):
        other.tune(GemmProblem(dtype=problem_dtype(), m=1, n=1, k=1, device="0"))
    (fault,) = other.file_faults()
    assert (Path(fault.path).name, len(fault.mismatches)) == ("tunableop_results0.csv", 1)


def problem_dtype() -> Any:
    from tensorplay.gemm import dtype_of_name

    return dtype_of_name("float32")


def test_saved_winners_are_those_of_memory_and_what_the_file_held(
    context: TuningContext, call: Any, tmp_path: Path
) -> None:
    call(context)
    context.save_results("0", str(tmp_path / "copy.csv"))
    assert FAST in (tmp_path / "copy.csv").read_text()
    with pytest.raises(OSError, match="no such folder"):
        context.save_results("0", str(tmp_path / "none" / "copy.csv"))


def test_lists_can_be_cleared_and_fill_again(
    context: TuningContext, call: Any, problem: GemmProblem, backend: ScriptedBackend
) -> None:
    signature = signature_of(problem)
    context.tuning_disable()
    call(context)
    assert context.forget_untuned(*signature)
    assert not context.forget_untuned(*signature)
    assert context.get_untuned() == []
    call(context)
    assert context.get_untuned() == [signature]
    assert context.forget_all_untuned() == 1
    context.measure_beside(problem)
    backend.unavailable[FAST] = "gone"
    call(context)
    assert context.clear_rejections() == 1
    assert context.get_rejections() == []
    call(context)
    assert len(context.get_rejections()) == 1


def test_calls_that_replayed_a_winner_are_none_of_those_without_one(
    context: TuningContext, call: Any, problem: GemmProblem
) -> None:
    signature = signature_of(problem)
    context.tuning_disable()
    call(context)
    assert context.calls_by_signature() == {signature: 1}
    context.measure_beside(problem)
    for _ in range(3):
        call(context)
    assert context.calls_by_signature() == {signature: 1}
    context.forget(*signature)
    call(context)
    assert context.calls_by_signature() == {signature: 2}
    assert context.calls_of(*signature) == {"replayed": 3, "first_choice": 2}


def test_what_changed_and_what_it_cost_before_is_told_for_many_at_once(
    make_context: MakeContext, call: Any, problem: GemmProblem
) -> None:
    context, signature = make_context(), signature_of(problem)
    before = context.results_revision()
    call(context)
    assert context.changed_since(before) is None, "the device is new"
    seen = context.results_revision()
    context.pin_winner(*signature)
    assert context.changed_since(seen) == frozenset({signature})
    assert [each.pinned for each in context.recorded_of([signature, Signature("a", "b")])] == [True]
    assert context.first_choices([signature]) == {signature: pytest.approx(1.0)}
    context.plans.clear()
    context.resolve(problem, context.backend("0"))
    fresh = make_context()
    call(fresh)
    assert fresh.first_choices([signature]) == {signature: pytest.approx(1.0)}
    fresh.override(*signature, SLOW)
    assert fresh.first_choices([signature]) == {}
