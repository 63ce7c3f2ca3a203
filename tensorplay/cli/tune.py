"""`tensorplay tune`: the signatures of untuned or results files, measured in processes of their own."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensorplay.cli.comparison import undecided
from tensorplay.cli.exit_code import FAILED
from tensorplay.cli.progress import Progress
from tensorplay.cli.render import count, duration, multiple, printable
from tensorplay.cli.table import Column, print_table
from tensorplay.cli.tuning_file import TuningFile, read_tuning_file
from tensorplay.gemm import Signature

if TYPE_CHECKING:
    from tensorplay.distributed.offline import TuneOutcome

__all__ = ["tune"]

_COLUMNS = (
    Column("op"),
    Column("params"),
    Column("kernel"),
    Column("time", is_number=True),
    Column("gain", is_number=True),
    Column("outcome"),
)


@click.command(
    short_help="Measure the signatures of a file, in processes that may die.",
    epilog="\b\nExample:\n  tensorplay tune tunableop_untuned0.csv --candidates search",
)
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--results",
    metavar="NAME",
    help="Results file that winners go to; the device ordinal is inserted.  [default: TP_TUNABLEOP_FILENAME, else "
    "tunableop_results.csv]",
)
@click.option(
    "--candidates",
    type=click.Choice(["heuristic", "wide", "search"]),
    help="Which candidates take part.  [default: TP_TUNABLEOP_CANDIDATES, else wide]",
)
@click.option(
    "--families",
    type=click.Choice(["plan", "all"]),
    help="Which products are tuned at all.  [default: TP_TUNABLEOP_FAMILIES, else plan]",
)
@click.option("--again", is_flag=True, help="Measure signatures that have a winner too.")
@click.option(
    "--undecided",
    "only_undecided",
    is_flag=True,
    help="Measure again, and only, those of results files that were never really compared: the verdict is insufficient "
    "budget, unstable or not measured. Without files, those named tunableop_results*.csv.",
)
@click.option(
    "--stall-seconds",
    type=click.FloatRange(1.0, 86400.0),
    default=120.0,
    show_default=True,
    help="A worker that says nothing for so long counts as hung, and is ended.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output, and nothing else.")
@click.pass_context
def tune(
    ctx: click.Context,
    *,
    files: Sequence[str],
    results: str | None,
    candidates: str | None,
    families: str | None,
    again: bool,
    only_undecided: bool,
    stall_seconds: float,
    as_json: bool,
) -> None:
    """Measure every signature of untuned or results files, and record the winners.

    Without files, those of the working directory that are named as untuned files are by default. Each device has a
    process of its own. A kernel that kills or hangs it, or after which nothing runs any more, is remembered beside
    the results file and never tried again. The exit code is 1 when a signature could not be measured.
    """
    named = "results" if only_undecided else "untuned"
    files = files or sorted(str(path) for path in Path().glob(f"tunableop_{named}*.csv"))
    signatures = _undecided(files) if only_undecided else _signatures(files)
    environ = dict(os.environ) | {
        f"TP_TUNABLEOP_{name}": value
        for name, value in (("FILENAME", results), ("CANDIDATES", candidates), ("FAMILIES", families))
        if value is not None
    }
    from tensorplay.distributed.offline import OfflineTuner  # noqa: PLC0415 - `--help` need not wait for NumPy

    outcomes: list[TuneOutcome] = []
    with Progress(len(signatures)) as progress:

        def tell(outcome: "TuneOutcome") -> None:
            outcomes.append(outcome)
            progress.advance()
            progress.line(f"{len(outcomes)} of {len(signatures)}  {outcome.signature.params}: {_outcome(outcome)}")

        try:
            OfflineTuner(environ=environ, stall_s=stall_seconds, again=again or only_undecided).tune(
                signatures, tell=tell
            )
        except OSError as error:
            raise click.ClickException(printable(str(error))) from None
    if as_json:
        click.echo(json.dumps([asdict(outcome) | {"gain": outcome.gain} for outcome in outcomes], indent=2))
    elif not signatures:
        click.echo("nothing to measure: as far as the files say, every winner was really compared")
    else:
        print_table(_COLUMNS, [_row(outcome) for outcome in outcomes])
        click.echo(_closing(outcomes))
    ctx.exit(FAILED if any(outcome.problem for outcome in outcomes) else 0)


def _read(path: str) -> TuningFile:
    try:
        return read_tuning_file(path)
    except OSError as error:
        raise click.UsageError(printable(str(error))) from None


def _undecided(files: Sequence[str]) -> list[Signature]:
    """Return the signatures of results files whose winners were never really compared."""
    if not files:
        raise click.UsageError("there is no results file here; name files")
    found: dict[Signature, str] = {}
    for file in map(_read, files):
        found |= undecided(file.path, file.winners, file.validators)
    return list(found)


def _signatures(files: Sequence[str]) -> list[Signature]:
    """Return the signatures of the files, each once; a usage error when there are none."""
    found: dict[Signature, None] = {}
    for file in map(_read, files):
        found.update(dict.fromkeys(file.untuned))
        found.update(dict.fromkeys(winner.signature for winner in file.winners))
    if not found:
        named = ", ".join(printable(path) for path in files)
        raise click.UsageError(
            f"no signatures in {named}"
            if named
            else "there is no untuned file here; name files, or record one first: "
            "TP_TUNABLEOP_ENABLED=1 TP_TUNABLEOP_TUNING=0 TP_TUNABLEOP_RECORD_UNTUNED=1"
        )
    return list(found)


def _row(outcome: "TuneOutcome") -> list[str]:
    return [
        outcome.signature.op,
        outcome.signature.params,
        outcome.kernel or "-",
        duration(outcome.time_ms),
        multiple(outcome.gain),
        _outcome(outcome),
    ]


def _outcome(outcome: "TuneOutcome") -> str:
    if outcome.problem:
        return printable(f"not measured: {outcome.problem}")
    said = str(outcome.verdict) if outcome.measured else "recorded before"
    deaths = f", {count(len(outcome.killers), 'killer')} left out" if outcome.killers else ""
    return said + deaths


def _closing(outcomes: Sequence["TuneOutcome"]) -> str:
    measured = sum(outcome.measured for outcome in outcomes)
    failed = sum(outcome.problem is not None for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return f"{measured} of {count(len(outcomes), 'signature')} measured in {seconds:.1f} s, {failed} could not be"
