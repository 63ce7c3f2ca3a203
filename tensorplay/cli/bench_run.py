"""One run of the benchmark: every shape in every mode, round by round, with progress on standard error."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tensorplay.cli.bench_process import BenchMode, Job, WorkerError, run_job
from tensorplay.cli.bench_report import BenchReport
from tensorplay.cli.bench_shape import BenchShape
from tensorplay.cli.bench_summary import ShapeSummary
from tensorplay.cli.progress import Progress
from tensorplay.cli.render import multiple
from tensorplay.cli.this_build import this_build
from tensorplay.database.filename import insert_ordinal, sibling_name
from tensorplay.database.store import ResultsStore
from tensorplay.database.validators import digest

__all__ = ["BenchRun"]

_RESULTS_NAME = "tunableop_results.csv"


class BenchRun:
    """Starts the workers and gathers what they find.

    Parameters
    ----------
    directory : str
        Where the results file is; made when missing.
    environ : mapping
        What the workers' environments are made of.
    repeats : int
        Processes of each mode and shape.
    iterations : int
        Timed batches in each.
    fresh : bool
        Whether the results file that is there is moved aside first.

    Raises
    ------
    OSError
        When the directory cannot be made, or the file not moved.
    """

    def __init__(
        self, directory: str, *, environ: Mapping[str, str], repeats: int, iterations: int, fresh: bool
    ) -> None:
        folder = Path(directory).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        self._environ = environ
        self._repeats = repeats
        self._iterations = iterations
        self._results_name = str(folder / _RESULTS_NAME)
        self._build = this_build()
        self._complaints: set[str] = set()
        if fresh:
            self._move_aside()

    def time(self, shapes: Sequence[BenchShape]) -> BenchReport:
        """Return what was found; after Ctrl-C, what was found until then."""
        summaries: list[ShapeSummary] = []
        is_interrupted = False
        try:
            with Progress(len(shapes) * self._repeats * len(BenchMode)) as progress:
                for shape in shapes:
                    summary = ShapeSummary(shape)
                    self._time_shape(summary, progress)
                    summaries.append(summary)
                    progress.line(f"{len(summaries)} of {len(shapes)}  {_result(summary)}")
        except KeyboardInterrupt:
            is_interrupted = True
        return BenchReport(
            summaries=summaries,
            device=self._build.device,
            results_name=self._results_name,
            results_file=self._results_file(),
            repeats=self._repeats,
            iterations=self._iterations,
            is_interrupted=is_interrupted,
        )

    def _time_shape(self, summary: ShapeSummary, progress: Progress) -> None:
        jobs = self._repeats * len(BenchMode)
        with tempfile.TemporaryDirectory() as scratch:
            for number in range(self._repeats):
                for mode in BenchMode:
                    if mode is BenchMode.TUNE and number and summary.tuning_ms is None:
                        # The file held the winner at the first round: there is no tuning to time.
                        continue
                    progress.at(f"{summary.shape} {mode}")
                    # Later rounds of tuning have a file of their own, since the first has found the winner.
                    name = str(Path(scratch) / f"{number}.csv") if mode is BenchMode.TUNE and number else ""
                    self._run(summary, Job(summary.shape, mode, self._iterations, name or self._results_name), progress)
                    if summary.problems or summary.skipped:
                        progress.advance(jobs)
                        return
                    progress.advance()
                    jobs -= 1
        progress.advance(jobs)

    def _run(self, summary: ShapeSummary, job: Job, progress: Progress) -> None:
        try:
            reply = run_job(job, self._environ)
        except WorkerError as error:
            summary.problems.append(f"{job.mode}: {error}")
            return
        summary.add(job.mode, reply)
        for complaint in (*reply["warnings"], *reply["stderr"].splitlines()):
            if complaint not in self._complaints:
                self._complaints.add(complaint)
                progress.line(complaint)

    def _configured_file(self) -> str:
        return insert_ordinal(self._results_name, self._build.device)

    def _results_file(self) -> str:
        """Return the file that the winners went to."""
        store = ResultsStore(self._configured_file(), self._build.validators)
        store.load()
        return store.target

    def _move_aside(self) -> None:
        configured = self._configured_file()
        for path in (configured, sibling_name(configured, digest(self._build.validators))):
            with suppress(FileNotFoundError):
                Path(path).replace(f"{path}.old")


def _result(summary: ShapeSummary) -> str:
    """Return a shape's result in one line."""
    gain, winner = summary.gain_paired, summary.winner
    if gain is None or winner is None:
        return f"{summary.shape}: {summary.outcome}"
    return f"{summary.shape}: {summary.outcome}, {multiple(gain.median)}, {winner['kernel']}"
