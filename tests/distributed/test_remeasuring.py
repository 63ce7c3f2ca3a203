"""A winner that was confirmed is replaced by what another measurement decided, and by nothing less."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.csv_text import parse_results
from tensorplay.distributed.remeasuring import RemeasuringContext
from tensorplay.gemm import DEFAULT, GemmProblem, dtype_of_name, signature_of
from tensorplay.measure.report import UNDECIDED, CandidateReport, SelectionReport, Verdict
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.kept_winner import has_failed
from tensorplay.testing import ScriptedBackend, scripted_kernel
from tensorplay.testing.scripted_timer import Script, steady, with_outliers

FIRST, FAST, FASTER = (scripted_kernel(number) for number in range(1, 4))
Scripts = Mapping[str, Script | float]
CALM: Scripts = {FIRST: 1.0, FAST: 0.5}
SCATTERED: Scripts = {FIRST: 1.0, FAST: with_outliers(steady(0.5), share=0.3, factor=20.0)}
FEW = {"TP_TUNABLEOP_MAX_TUNING_SAMPLES": "2"}
NO_MORE: Mapping[str, str] = {}


class Desk:
    """One product and the results file that its winner is kept in, for contexts that come and go."""

    def __init__(self, folder: Path) -> None:
        dtype = dtype_of_name("float32")
        assert dtype is not None
        self.problem = GemmProblem(dtype=dtype, m=4, n=3, k=5, device="0")
        self.signature = signature_of(self.problem)
        self.file = folder / "winners0.csv"
        self.explanations = folder / "winners0.explain.jsonl"
        self.told: dict[str, object] = {}
        self._environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": str(folder / "winners.csv")}

    @property
    def winner(self) -> str:
        (entry,) = parse_results(self.file.read_bytes()).entries
        return entry.kernel

    @property
    def texts(self) -> tuple[bytes, bytes]:
        return self.file.read_bytes(), self.explanations.read_bytes()

    def measure(self, scripts: Scripts = CALM, environ: Mapping[str, str] = NO_MORE) -> None:
        """Measure as a program does."""
        backend = ScriptedBackend(scripts)
        context = TuningContext(environ={**self._environ, **environ}, backends={"0": backend})
        context.resolve(self.problem, backend)
        context.close()

    def override(self, kernel: str) -> None:
        context = TuningContext(environ=self._environ, backends={"0": ScriptedBackend(CALM)})
        context.override(*self.signature, kernel)
        context.close()

    def measure_again(
        self, scripts: Scripts | ScriptedBackend = CALM, environ: Mapping[str, str] = NO_MORE
    ) -> Verdict | None:
        """Measure as a worker does that is asked to do it again."""
        backend = scripts if isinstance(scripts, ScriptedBackend) else ScriptedBackend(scripts)
        context = RemeasuringContext(environ={**self._environ, **environ}, backends={"0": backend})
        undecided = context.measure_again(self.problem, backend)
        assert backend.trials == [self.problem]
        self.told = context.explain(*self.signature)
        context.close()
        return undecided


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("scripts", "environ", "verdict"),
    [
        (CALM, FEW, Verdict.INSUFFICIENT_BUDGET),
        (SCATTERED, {"TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "0"}, Verdict.UNSTABLE),
        ({FIRST: float("nan"), FAST: 0.5}, {}, Verdict.NOT_MEASURED),
    ],
)
@pytest.mark.parametrize("is_first_choice", [False, True])
def test_a_decided_winner_and_its_explanation_stay_when_nothing_is_decided(
    desk: Desk, scripts: Scripts, environ: dict[str, str], verdict: Verdict, is_first_choice: bool
) -> None:
    desk.measure({FIRST: 1.0, FAST: 2.0} if is_first_choice else CALM)
    before = desk.texts
    assert desk.measure_again(scripts, environ) is verdict
    assert desk.texts == before
    assert desk.told["kernel"] == (FIRST if is_first_choice else FAST)
    assert desk.told["verdict"] == ("first choice" if is_first_choice else "winner")
    assert desk.told["origin"] == "file"


@pytest.mark.parametrize(
    ("scripts", "winner", "verdict"),
    [
        ({FIRST: 1.0, FAST: 0.5, FASTER: 0.25}, FASTER, "winner"),
        ({FIRST: 1.0, FAST: 2.0}, FIRST, "first choice"),
        ({FIRST: 1.0, FAST: 0.9999}, FIRST, None),
        ({FIRST: 1.0}, FIRST, "alone"),
    ],
)
def test_what_was_decided_takes_its_place(
    desk: Desk, scripts: dict[str, float], winner: str, verdict: str | None
) -> None:
    desk.measure()
    assert desk.measure_again(scripts) is None
    assert desk.winner == winner
    assert desk.told["verdict"] in ({verdict} if verdict else {"within noise", "first choice"})
    assert desk.told["origin"] == "measured here"


def test_what_was_never_decided_either_is_replaced(desk: Desk) -> None:
    desk.measure(CALM, FEW)
    assert desk.measure_again({FIRST: 3.0, FAST: 0.5}, FEW) is None
    assert desk.told["first_choice_ms"] == pytest.approx(3.0)
    assert desk.told["verdict"] == "insufficient budget"
    assert desk.winner == FIRST


def test_what_has_no_winner_gets_one_whatever_the_verdict(desk: Desk) -> None:
    assert desk.measure_again(CALM, FEW) is None
    assert desk.winner == FIRST


@pytest.mark.parametrize("kernel", [FAST, DEFAULT])
def test_what_a_person_chose_stays(desk: Desk, kernel: str) -> None:
    desk.override(kernel)
    before = desk.file.read_bytes()
    assert desk.measure_again(CALM, FEW) is Verdict.INSUFFICIENT_BUDGET
    assert desk.file.read_bytes() == before


def test_a_winner_whose_explanation_is_gone_stays(desk: Desk) -> None:
    desk.measure()
    desk.explanations.unlink()
    assert desk.measure_again(CALM, FEW) is Verdict.INSUFFICIENT_BUDGET
    assert desk.winner == FAST


@pytest.mark.parametrize("fault", ["unavailable", "broken", "wrong"])
def test_a_winner_that_does_not_run_here_any_more_does_not_stay(desk: Desk, fault: str) -> None:
    desk.measure()
    backend = ScriptedBackend({FIRST: 1.0, FAST: 0.5, FASTER: 0.25})
    if fault == "unavailable":
        backend.unavailable[FAST] = "removed"
    else:
        getattr(backend, fault).add(FAST)
    assert desk.measure_again(backend, FEW) is None
    assert desk.winner == FIRST


def test_a_measurement_that_fails_leaves_the_winner_and_says_why(desk: Desk) -> None:
    desk.measure()
    before, backend = desk.texts, ScriptedBackend(CALM)
    backend.broken.add(FIRST)
    assert desk.measure_again(backend) is None
    assert desk.texts == before
    assert "fails by script" in str(desk.told["not_measured"])


def test_another_builds_winner_is_left_as_it_is(desk: Desk, tmp_path: Path) -> None:
    desk.measure()
    before = desk.texts
    with pytest.warns(UserWarning, match="SCRIPTED_VERSION"):
        assert desk.measure_again(ScriptedBackend(CALM, version="2"), FEW) is None
    assert desk.texts == before
    assert len(list(tmp_path.glob("winners0.*.csv"))) == 1


@given(st.sampled_from(["screening", "race", "confirmation", "not confirmed", "not measured"]), st.text())
def test_only_a_failure_speaks_against_a_kernel(stage: str, rest: str) -> None:
    def reported(reason: str) -> SelectionReport:
        return SelectionReport.not_measured(FIRST, "failed").with_candidates([CandidateReport.untimed(FAST, reason)])

    assert not has_failed(FAST, reported(f"{stage}: {rest}"))
    assert has_failed(FAST, reported(f"wrong result: {rest}"))
    assert not has_failed(FASTER, reported(f"wrong result: {rest}"))


def test_undecided_are_the_verdicts_that_select_the_first_choice_without_a_comparison() -> None:
    assert set(Verdict) - UNDECIDED == {Verdict.WINNER, Verdict.FIRST_CHOICE, Verdict.WITHIN_NOISE, Verdict.ALONE}
