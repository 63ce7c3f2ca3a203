"""How `tensorplay bench` tells what it found: a table and closing lines, or one JSON document."""

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensorplay.cli.bench_process import BenchMode
from tensorplay.cli.bench_summary import MOST_SPREAD, Outcome, ShapeSummary, Spread
from tensorplay.cli.render import MISSING, count, duration, multiple, printable, spread
from tensorplay.cli.table import Column
from tensorplay.version import __version__

__all__ = ["BenchReport"]

FORMAT = 1
"""Generation of the JSON document; raised when a field changes its meaning or goes."""

_COLUMNS = (
    Column("shape, winner", is_whole=True),
    Column("process"),
    Column("first", is_number=True),
    Column("steady", is_number=True),
    Column("gain", is_number=True),
    Column("apart", is_number=True),
)


class BenchReport(NamedTuple):
    """Everything that a run of the benchmark found.

    Attributes
    ----------
    results_name : str
        The configured results file, before the ordinal is inserted: what a user's variable should say.
    results_file : str
        The file that the winners are in.
    is_interrupted : bool
        Whether Ctrl-C ended the run, so that shapes are missing.
    """

    summaries: Sequence[ShapeSummary]
    device: str
    results_name: str
    results_file: str
    repeats: int
    iterations: int
    is_interrupted: bool = False

    @property
    def columns(self) -> Sequence[Column]:
        """Return the heads of the table's columns."""
        return _COLUMNS

    @property
    def has_failed(self) -> bool:
        """Return whether any shape failed."""
        return any(summary.outcome is Outcome.FAILED for summary in self.summaries)

    def rows(self) -> list[list[str]]:
        """Return the cells of the table: for each shape a row of each process, in the order they ran."""
        return [[printable(cell) for cell in row] for summary in self.summaries for row in _rows(summary)]

    def closing(self) -> Iterator[str]:
        """Yield the lines under the table: what the columns mean, what went wrong, and what to do next."""
        within = "fresh processes" if self.repeats > 1 else "the batches of one process"
        yield "first   the first call of a fresh process, which is the one that measures while tuning"
        yield f"steady  the median call afterwards, ± over {within}"
        yield "gain    NumPy's time over the replay's, timed in turns in one process: the one to trust"
        yield "apart   steady default over steady replay, which ran in different processes: noisy"
        yield ""
        for summary in self.summaries:
            yield from _remarks(summary)
        if restless := sum(summary.is_restless for summary in self.summaries):
            yield (
                f"{count(restless, 'gain varies', 'gains vary')} by more than {MOST_SPREAD:.0%}: the machine is busy; "
                "stop other programs, or ask for more --repeats and --iterations"
            )
        yield self._verdict()
        if all(summary.winner is None for summary in self.summaries):
            yield "there is no winner to replay elsewhere"
            return
        yield f"winners: {printable(self.results_file)}"
        yield "to replay them in a program of your own:"
        yield "  export TP_TUNABLEOP_ENABLED=1"
        yield f"  export TP_TUNABLEOP_FILENAME={printable(shlex.quote(self.results_name))}"

    def document(self) -> dict[str, object]:
        """Return the report as JSON takes it."""
        return {
            "format": FORMAT,
            "tensorplay": __version__,
            "device": self.device,
            "results_file": self.results_file,
            "environment": {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": self.results_name},
            "repeats": self.repeats,
            "iterations": self.iterations,
            "ok": not self.has_failed,
            "shapes": [_document(summary) for summary in self.summaries],
        }

    def _verdict(self) -> str:
        measured = sum(summary.measured_in_replay for summary in self.summaries)
        replayed = sum(summary.outcome is Outcome.REPLAYED for summary in self.summaries)
        counted = "nothing" if measured == 0 else count(measured, "signature")
        return f"replay measured {counted}: {replayed} of {count(len(self.summaries), 'shape')} replayed"


def _remarks(summary: ShapeSummary) -> Iterator[str]:
    """Yield what there is to say about a shape that was not simply replayed."""
    for problem in summary.problems:
        yield f"{summary.shape} failed: {printable(problem)}"
    if summary.outcome is Outcome.SKIPPED:
        yield f"{summary.shape} was skipped: {printable(summary.skipped)}"
    if summary.outcome is Outcome.NOT_TUNED:
        why = "its kind is not tuned by default; `tensorplay doctor --settings` explains TP_TUNABLEOP_FAMILIES"
        yield f"{summary.shape} was not tuned: {printable(summary.not_measured or why)}"


class _Row(NamedTuple):
    """The cells of one line of the table."""

    what: str
    process: str
    first: str
    steady: str = ""
    gain: str = ""
    apart: str = ""


def _rows(summary: ShapeSummary) -> Iterator[_Row]:
    """Yield the rows of a shape; only one when it did not run."""
    name, outcome = str(summary.shape), summary.outcome.value
    default, replay = BenchMode.DEFAULT, BenchMode.REPLAY
    if not summary.is_complete:
        yield _Row(name, outcome, MISSING)
        return
    first, steady = _time(summary.first_call_ms(replay)), _steady(summary, replay)
    yield _Row(name, default.value, _time(summary.first_call_ms(default)), _steady(summary, default))
    winner, gain = summary.winner, summary.gain_paired
    if winner is None or gain is None:
        yield _Row(f"  {outcome}", "enabled", first, steady)
        return
    yield _Row(f"  {winner['kernel']}", "tuning", "kept" if summary.tuning_ms is None else _time(summary.tuning_ms))
    paired = f"{multiple(gain.median)} {spread(*gain.ordered)}"
    yield _Row("", replay.value, first, steady, paired, multiple(summary.gain_between_processes))


def _time(times: Spread | None) -> str:
    return duration(None if times is None else times.median)


def _steady(summary: ShapeSummary, mode: BenchMode) -> str:
    times = summary.steady_ms(mode)
    return MISSING if times is None else f"{duration(times.median)} {spread(*times.ordered)}"


def _document(summary: ShapeSummary) -> dict[str, object]:
    shape, winner = summary.shape, summary.winner
    return {
        "shape": str(shape),
        "dtype": shape.dtype,
        "m": shape.m,
        "n": shape.n,
        "k": shape.k,
        "transposed": shape.transposed,
        "bias": shape.bias,
        "outcome": summary.outcome.value,
        "problems": summary.problems,
        "skipped": summary.skipped or None,
        "default": _mode(summary, BenchMode.DEFAULT),
        "replay": _mode(summary, BenchMode.REPLAY),
        "tuning_ms": _fields(summary.tuning_ms),
        "winner": {name: winner[name] for name in ("signature", "kernel", "time_ms", "verdict")} if winner else None,
        "gain": {"paired": _fields(summary.gain_paired), "between_processes": summary.gain_between_processes},
        "replayed_calls": summary.replayed,
        "measured_in_replay": summary.measured_in_replay,
    }


def _mode(summary: ShapeSummary, mode: BenchMode) -> dict[str, object]:
    return {"first_call_ms": _fields(summary.first_call_ms(mode)), "steady_ms": _fields(summary.steady_ms(mode))}


def _fields(times: Spread | None) -> dict[str, float] | None:
    return None if times is None else times._asdict()
