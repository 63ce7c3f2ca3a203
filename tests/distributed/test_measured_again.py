"""Whatever becomes of workers that measure again, the winner of before is there until another one was decided."""

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread

import pytest

from tensorplay.database.csv_text import parse_results
from tensorplay.distributed.offline import OfflineTuner, TuneOutcome, _DeviceRun
from tensorplay.gemm import Signature
from tensorplay.testing import scripted_kernel

WORKER = """
import os, signal, sys, time
from pathlib import Path
from tensorplay.distributed.worker import main
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, NEXT = (scripted_kernel(number) for number in range(1, 4))
HOW = sys.argv.pop(1)


class Again(ScriptedBackend):
    def _plan(self, problem, kernel):
        plan = super()._plan(problem, kernel)

        def run(*operands):
            if (HOW, kernel) in {("first choice kills", FIRST), ("winner kills", FAST)}:
                os.kill(os.getpid(), signal.SIGKILL)
            if HOW == "waits":
                Path(__file__).with_name("running").touch()
                time.sleep(600)
            return plan.run(*operands)

        return type(plan)(problem, kernel, run)

    def clocks(self, device):
        if HOW == "killed before it records":
            os.kill(os.getpid(), signal.SIGKILL)
        if HOW == "fails before it records":
            raise KeyError("clocks")
        return None


times = {FIRST: 1.0, FAST: 0.5, NEXT: 0.7}
if HOW == "slower":
    times[FAST] = 2.0
sys.exit(main(find=lambda device: Again(times, device=device)))
"""

FIRST, FAST, NEXT = (scripted_kernel(number) for number in range(1, 4))
ONE, OTHER, MANY = (
    Signature("GemmTunableOp_Float32", f"taN_m{m}_n3_k5_bias0_dev0{more}")
    for m, more in ((4, ""), (8, ""), (4, "_batch2"))
)
FEW = {"TP_TUNABLEOP_MAX_TUNING_SAMPLES": "2"}


class Bench:
    """Results of signatures that were measured well, and tuners that measure them again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "worker.py").write_text(WORKER, encoding="utf-8")

    @property
    def texts(self) -> list[bytes]:
        return [(self.folder / name).read_bytes() for name in ("winners0.csv", "winners0.explain.jsonl")]

    @property
    def winners(self) -> dict[str, str]:
        return {
            entry.params: entry.kernel for entry in parse_results((self.folder / "winners0.csv").read_bytes()).entries
        }

    def tuner(self, how: str, environ: Mapping[str, str] | None = None, *, again: bool = True) -> OfflineTuner:
        def command(device: str, results: str) -> Sequence[str]:
            return [sys.executable, str(self.folder / "worker.py"), how, device, results]

        named = {"TP_TUNABLEOP_FILENAME": str(self.folder / "winners.csv")}
        return OfflineTuner(environ={**os.environ, **named, **(environ or {})}, command=command, again=again)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all three were measured well."""
    bench = Bench(tmp_path_factory.mktemp("measured"))
    outcomes = bench.tuner("calm", {"TP_TUNABLEOP_FAMILIES": "all"}, again=False).tune([ONE, OTHER, MANY])
    assert [(outcome.kernel, outcome.verdict, outcome.kept) for outcome in outcomes] == [(FAST, "winner", None)] * 3
    return bench.folder


@pytest.fixture
def bench(measured: Path, tmp_path: Path) -> Bench:
    return Bench(Path(shutil.copytree(measured, tmp_path / "copy")))


@pytest.fixture
def before(bench: Bench) -> list[bytes]:
    """The files before anything was measured again."""
    return bench.texts


def test_undecided_leaves_all_as_it_was_and_says_so_and_decided_does_not(bench: Bench, before: list[bytes]) -> None:
    for outcome in bench.tuner("calm", FEW).tune([ONE, OTHER]):
        assert (outcome.kernel, outcome.verdict, outcome.measured, outcome.problem) == (FAST, "winner", True, None)
        assert outcome.gain == pytest.approx(2.0)
        assert outcome.kept == "the earlier winner stays, nothing was decided now: insufficient budget"
    assert bench.texts == before
    (outcome,) = bench.tuner("slower").tune([ONE])
    assert (outcome.kernel, outcome.verdict, outcome.measured, outcome.kept) == (NEXT, "winner", True, None)
    assert bench.winners == {ONE.params: NEXT, OTHER.params: FAST, MANY.params: FAST}


@pytest.mark.parametrize("how", ["first choice kills", "killed before it records", "fails before it records"])
def test_workers_that_end_take_no_winner_with_them(bench: Bench, before: list[bytes], how: str) -> None:
    (outcome,) = bench.tuner(how).tune([ONE])
    assert outcome.problem
    assert (outcome.kernel, outcome.verdict, outcome.measured) == (FAST, "winner", False)
    assert outcome.kept == "the earlier winner stays"
    assert outcome.gain == pytest.approx(2.0)
    assert outcome.killers == ()
    assert bench.texts == before


def test_what_is_not_tunable_by_these_settings_keeps_its_winner(bench: Bench, before: list[bytes]) -> None:
    (outcome,) = bench.tuner("calm").tune([MANY])
    assert "FAMILIES=plan" in (outcome.problem or "")
    assert (outcome.kernel, outcome.kept) == (FAST, "the earlier winner stays")
    assert bench.texts == before


def test_a_winner_that_kills_now_is_replaced_even_by_what_was_not_decided(bench: Bench) -> None:
    decided, undecided = *bench.tuner("winner kills").tune([ONE]), *bench.tuner("winner kills", FEW).tune([OTHER])
    assert (decided.kernel, decided.kept) == (NEXT, None)
    assert (undecided.kernel, undecided.verdict, undecided.kept) == (FIRST, "insufficient budget", None)
    for outcome in (decided, undecided):
        assert [killer.kernel for killer in outcome.killers] == [FAST]
    assert bench.winners == {ONE.params: NEXT, OTHER.params: FIRST, MANY.params: FAST}


def test_an_interruption_takes_no_winner_with_it(bench: Bench, before: list[bytes]) -> None:
    told: list[TuneOutcome] = []
    run = _DeviceRun(bench.tuner("waits"), "0", [ONE, OTHER], told.append)
    thread = Thread(target=run.outcomes)
    thread.start()
    while not (bench.folder / "running").exists():
        time.sleep(0.01)
    run.stop()
    thread.join()
    assert [(outcome.kernel, outcome.kept) for outcome in told] == [(FAST, "the earlier winner stays")]
    assert bench.texts == before


def test_nothing_is_said_to_stay_where_nothing_was(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (outcome,) = bench.tuner("first choice kills").tune([ONE])
    assert outcome.problem
    assert (outcome.kernel, outcome.kept) == (None, None)
