"""A signal handler in the middle of a load: what it measures stays, and what was taken in before it is known of."""

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from tensorplay.database.csv_text import format_results
from tensorplay.database.record import Entry, Validator
from tensorplay.database.results import Results
from tensorplay.database.store import ResultsStore
from tensorplay.gemm import Signature
from tensorplay.runtime import slices
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.steered_results import SteeredResults
from tensorplay.testing import ScriptedBackend, scripted_kernel

OP = "GemmTunableOp_Float32"
VALIDATORS = (Validator("A_DEVICE", "of some kind"),)


def entry(m: int, kernel: str = "host_numpy", time_ms: float = 1.0) -> Entry:
    return Entry(OP, f"taN_m{m}_n3_k5_bias0_dev0", kernel, time_ms)


class Interrupted(Results):
    """Results whose reader is interrupted right after the first look at one signature."""

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self._signature: Signature | None = signature

    def get(self, signature: Signature) -> Entry | None:
        found = super().get(signature)
        if signature == self._signature:
            self._signature = None
            signal.raise_signal(signal.SIGINT)
        return found


@pytest.fixture(params=[False, True])
def overwrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def _handler_restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_handler_restored")
def test_what_a_handler_measures_in_a_load_stays_unless_the_load_is_to_replace_it(
    tmp_path: Path, overwrite: bool
) -> None:
    path, measured, of_file = tmp_path / "results.csv", entry(1, time_ms=0.5), entry(1, "host_scipy")
    results = SteeredResults("0", VALIDATORS, str(path), Listeners())
    results.ensure_loaded()
    results.results = Interrupted(measured.signature)

    def multiply(_number: int, _frame: FrameType | None) -> None:
        results.record(measured, "measured here")

    signal.signal(signal.SIGINT, multiply)
    data = format_results(VALIDATORS, [of_file, entry(2)]).encode()
    report = results.take("given.csv", data, overwrite=overwrite)
    assert results.results.get(measured.signature) == (of_file if overwrite else measured)
    assert (report.merged, report.kept) == ((2, 0) if overwrite else (1, 1))
    assert list(ResultsStore(str(path), VALIDATORS).load().entries) == [measured]


def test_what_was_taken_in_before_an_interrupt_is_known_to_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = ScriptedBackend({scripted_kernel(1): 1.0})
    context = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    data = format_results(
        [Validator(*pair) for pair in context.validators_of("0")], [entry(m) for m in range(1, 2001)]
    ).encode()
    before = context.results_revision()

    def interrupt() -> None:
        # All is read, and some of it is there.
        if context.recorded():
            raise KeyboardInterrupt

    monkeypatch.setattr(slices, "_give_way", interrupt)
    with pytest.raises(KeyboardInterrupt):
        context.load_results("0", "given.csv", data)
    assert 0 < len(context.recorded()) < 2000
    assert context.results_revision() > before
    context.close()
