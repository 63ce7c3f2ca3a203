"""The offline tuner, with real workers that really die."""

import os
from pathlib import Path
from typing import Any

import pytest

from tensorplay.backends.base import Backend
from tensorplay.database.csv_text import parse_results
from tensorplay.database.killers import Death, KillerLog
from tensorplay.distributed.guarded_backend import GuardedBackend
from tensorplay.distributed.offline import OfflineTuner, TuneOutcome
from tensorplay.errors import SignatureError
from tensorplay.gemm import Signature
from tensorplay.testing import scripted_kernel

FIRST, FAST, BAD = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
OP = "GemmTunableOp_Float32"
ONE, OTHER = (Signature(OP, f"taN_m{m}_n3_k5_bias0_dev0") for m in (4, 8))


@pytest.fixture
def make_tuner(tmp_path: Path, command: Any) -> Any:
    def make(how: str, **options: Any) -> OfflineTuner:
        environ = dict(os.environ) | {"TP_TUNABLEOP_FILENAME": str(tmp_path / "winners.csv")}
        return OfflineTuner(environ=environ, command=command(how), **options)

    return make


def winners(path: Path) -> dict[str, str]:
    return {entry.params: entry.kernel for entry in parse_results(path.read_bytes()).entries}


def test_every_signature_is_measured_once_and_recorded(make_tuner: Any, tmp_path: Path) -> None:
    told: list[TuneOutcome] = []
    outcomes = make_tuner("fine").tune([ONE, OTHER, ONE], tell=told.append)
    assert outcomes == told
    assert [outcome.signature for outcome in outcomes] == [ONE, OTHER]
    assert all(outcome.kernel == BAD and outcome.measured and outcome.gain == pytest.approx(4) for outcome in outcomes)
    assert winners(tmp_path / "winners0.csv") == {ONE.params: BAD, OTHER.params: BAD}
    assert not any(outcome.measured for outcome in make_tuner("fine").tune([ONE]))
    assert all(outcome.measured for outcome in make_tuner("fine", again=True).tune([ONE]))


@pytest.mark.parametrize(
    ("how", "death"),
    [("killed", Death.DIED), ("exits", Death.DIED), ("hung", Death.HUNG), ("poisoned", Death.POISONED)],
)
def test_a_killer_is_remembered_and_the_next_best_wins(make_tuner: Any, tmp_path: Path, how: str, death: Death) -> None:
    # Who is not hung may be slow, on a machine that does much else.
    signatures, stall_s = ([ONE], 6.0) if how == "hung" else ([ONE, OTHER], 60.0)
    outcomes = make_tuner(how, stall_s=stall_s).tune(signatures)
    assert [outcome.signature for outcome in outcomes] == signatures
    for outcome in outcomes:
        assert outcome.problem is None
        assert outcome.kernel == FAST
        assert [(killer.kernel, killer.death) for killer in outcome.killers] == [(BAD, death)]
    assert winners(tmp_path / "winners0.csv") == {signature.params: FAST for signature in signatures}
    kept = KillerLog(str(tmp_path / "winners0.killers.csv")).read()
    assert {(killer.signature, killer.kernel) for killer in kept} == {(signature, BAD) for signature in signatures}
    # A later run of the tuner never tries them: nothing dies any more.
    assert [outcome.killers for outcome in make_tuner(how, again=True).tune([ONE])] == [()]


def test_a_kernel_that_only_fails_is_no_killer(make_tuner: Any, tmp_path: Path) -> None:
    (outcome,) = make_tuner("fails").tune([ONE])
    assert (outcome.kernel, outcome.killers) == (FAST, ())
    assert not (tmp_path / "winners0.killers.csv").exists()


def test_a_worker_that_does_not_start_is_told_once_per_signature_and_blames_no_kernel(make_tuner: Any) -> None:
    outcomes = make_tuner("does not start").tune([ONE, OTHER])
    assert all("no such device" in (outcome.problem or "") for outcome in outcomes)
    assert [outcome.killers for outcome in outcomes] == [(), ()]


def test_a_signature_outside_the_tunable_family_is_said_to_be(make_tuner: Any) -> None:
    (outcome,) = make_tuner("fine").tune([Signature(OP, "taN_m4_n3_k5_bias0_dev0_batch2")])
    assert "FAMILIES=plan" in (outcome.problem or "")
    assert not outcome.measured


def test_devices_are_measured_at_once_each_with_its_own_file(make_tuner: Any, tmp_path: Path) -> None:
    second = Signature(OP, ONE.params.replace("dev0", "dev1"))
    assert len(make_tuner("killed").tune([ONE, second])) == 2
    assert winners(tmp_path / "winners0.csv") == {ONE.params: FAST}
    assert winners(tmp_path / "winners1.csv") == {second.params: FAST}
    assert (tmp_path / "winners1.killers.csv").exists()


def test_what_is_no_signature_starts_no_worker(make_tuner: Any, tmp_path: Path) -> None:
    with pytest.raises(SignatureError):
        make_tuner("fine").tune([Signature(OP, "nonsense")])
    assert make_tuner("fine").tune([]) == []
    assert not list(tmp_path.glob("winners*"))


def test_the_guarded_backend_forwards_every_method_of_a_backend() -> None:
    own = {name for name in vars(Backend) if not name.startswith("_") and callable(getattr(Backend, name))}
    assert own <= set(vars(GuardedBackend))
