"""What a disk does to the offline tuner, and an end in the middle of a start."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database.killers import Death, KillerLog
from tensorplay.distributed.offline import OfflineTuner, TuneOutcome, _DeviceRun
from tensorplay.gemm import Signature
from tensorplay.testing import scripted_kernel

FAST, BAD = scripted_kernel(2), scripted_kernel(3)
OP = "GemmTunableOp_Float32"
ONE, OTHER, ELSEWHERE = (Signature(OP, f"taN_m{m}_n3_k5_bias0_dev{device}") for m, device in ((4, 0), (8, 0), (4, 1)))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return dict(os.environ) | {"TP_TUNABLEOP_FILENAME": str(tmp_path / "winners.csv")}


def test_killers_that_cannot_be_written_are_left_out_all_the_same_and_no_outcome_is_lost(
    environ: dict[str, str], command: Any, tmp_path: Path
) -> None:
    (tmp_path / "winners0.killers.csv.lock").mkdir()
    told: list[TuneOutcome] = []
    tuner = OfflineTuner(environ=environ, command=command("killed"))
    outcomes = tuner.tune([ONE, OTHER, ELSEWHERE], tell=told.append)
    assert [outcome.signature for outcome in outcomes] == [ONE, OTHER, ELSEWHERE]
    assert {outcome.signature for outcome in told} == {ONE, OTHER, ELSEWHERE}
    for outcome in outcomes:
        assert (outcome.problem, outcome.kernel) == (None, FAST)
        assert [(killer.kernel, killer.death) for killer in outcome.killers] == [(BAD, Death.DIED)]
    for outcome in outcomes[:2]:
        (warning,) = outcome.warnings
        assert BAD in warning
        assert "winners0.killers.csv" in warning
    assert outcomes[2].warnings == ()
    assert [killer.kernel for killer in KillerLog(str(tmp_path / "winners1.killers.csv")).read()] == [BAD]


def test_a_stop_while_a_worker_starts_ends_it_before_it_measures(
    environ: dict[str, str], command: Any, tmp_path: Path
) -> None:
    def interrupted(device: str, results: str) -> Sequence[str]:
        run.stop()
        words: Sequence[str] = command("fine")(device, results)
        return words

    run = _DeviceRun(OfflineTuner(environ=environ, command=interrupted), "0", [ONE, OTHER], lambda _: None)
    (outcome,) = run.outcomes()
    assert "stopped" in (outcome.problem or "")
    assert not (tmp_path / "winners0.csv").exists()
