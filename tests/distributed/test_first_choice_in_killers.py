"""A file of killers that names a first choice, as earlier versions wrote it, keeps no product from its winner."""

from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.killers import Death, Killer, KillerLog
from tensorplay.distributed.offline import OfflineTuner
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, SLOW = scripted_kernel(1), scripted_kernel(2)


@pytest.fixture
def problem(tmp_path: Path) -> GemmProblem:
    """A problem whose first choice is named there."""
    dtype = dtype_of_name("float32")
    assert dtype is not None
    posed = GemmProblem(dtype=dtype, m=4, n=3, k=5, device="0")
    KillerLog(str(tmp_path / "winners0.killers.csv")).record(Killer(*signature_of(posed), FIRST, Death.DIED))
    return posed


def test_a_first_choice_that_won_is_replayed_and_measured_once(problem: GemmProblem, tmp_path: Path) -> None:
    for trials in ([problem], [], []):
        backend = ScriptedBackend({FIRST: 1.0, SLOW: 2.0})
        environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": str(tmp_path / "winners.csv")}
        context = TuningContext(environ=environ, backends={"0": backend})
        plan = context.resolve(problem, backend).plan
        assert plan is not None
        assert plan.kernel == FIRST
        assert backend.trials == trials
        assert context.get_rejections() == []
        context.close()


def test_another_that_is_named_there_stays_out(problem: GemmProblem, tmp_path: Path) -> None:
    KillerLog(str(tmp_path / "winners0.killers.csv")).record(Killer(*signature_of(problem), SLOW, Death.DIED))
    backend = ScriptedBackend({FIRST: 1.0, SLOW: 0.5})
    environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": str(tmp_path / "winners.csv")}
    context = TuningContext(environ=environ, backends={"0": backend})
    plan = context.resolve(problem, backend).plan
    assert plan is not None
    assert plan.kernel == FIRST
    context.close()


def test_the_offline_tuner_measures_it_once_too(problem: GemmProblem, tmp_path: Path, command: Any) -> None:
    environ = {"TP_TUNABLEOP_FILENAME": str(tmp_path / "winners.csv"), "TP_TUNABLEOP_MIN_GAIN": "10"}
    tuner = OfflineTuner(environ=environ, command=command("fine"))
    for is_measured in (True, False):
        (outcome,) = tuner.tune([signature_of(problem)])
        assert (outcome.problem, outcome.kernel, outcome.measured) == (None, FIRST, is_measured)
