"""`tensorplay tune`: the signatures of untuned or results files, measured in processes of their own."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, NamedTuple

import click

from tensorplay.cli.exit_code import FAILED
from tensorplay.cli.progress import Progress
from tensorplay.cli.render import count, duration, multiple, printable
from tensorplay.cli.seconds import Seconds
from tensorplay.cli.signature_view import signature_cells, signature_columns
from tensorplay.cli.table import Column, print_table
from tensorplay.cli.tune_input import chosen_files, signatures_of, undecided_of, what_nothing_explains
from tensorplay.cli.tune_round import TuneRound, Wanted, rounds
from tensorplay.cli.tune_target import check_targets, checked_name

if TYPE_CHECKING:
    from tensorplay.distributed.offline import TuneOutcome

__all__ = ["tune"]

_WINNER = (
    Column("kernel", is_whole=True),
    Column("time", is_number=True),
    Column("gain", is_number=True),
    Column("outcome"),
)


class _Recorded(NamedTuple):
    """An outcome, the results file that it is for, and the one that has it: that or its sibling, None for neither."""

    outcome: "TuneOutcome"
    target: str
    holder: str | None


@click.command(
    short_help="Measure the signatures of a file, in processes that may die.",
    epilog="\b\nExample:\n  tensorplay tune tunableop_untuned0.csv --candidates search",
)
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--results",
    metavar="NAME",
    help="Results file that winners go to; the device ordinal is inserted, unless a file of that name is there whose "
    "name ends with it.  [default: the results file that a signature comes from; for untuned files "
    "TP_TUNABLEOP_FILENAME, else tunableop_results.csv]",
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
    type=Seconds(1.0, 86400.0),
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

    Without files, those of the working directory that are named as untuned files are by default. Winners of a results
    file go back to it. Each device has a process of its own. A kernel that kills or hangs it, or after which nothing
    runs any more, is remembered beside the results file and never tried again. The exit code is 1 when a signature
    could not be measured, or its winner not be written.
    """
    if again and only_undecided:
        raise click.UsageError("--again measures every signature, --undecided only some of them: give one of the two")
    chosen = chosen_files(files, only_results=only_undecided)
    wanted = undecided_of(chosen) if only_undecided else signatures_of(chosen)
    environ = dict(os.environ) | {
        f"TP_TUNABLEOP_{name}": value
        for name, value in (("CANDIDATES", candidates), ("FAMILIES", families))
        if value is not None
    }
    turns = _rounds(wanted, environ, results)
    check_targets(turns)
    # Before anything is measured: the lines are about the files as they were given.
    unknown = list(what_nothing_explains(chosen)) if only_undecided else []
    recorded = _measured(turns, environ, stall_seconds, again=again or only_undecided)
    if as_json:
        click.echo(json.dumps([_document(each) for each in recorded], indent=2))
    else:
        for line in _report(recorded, is_all_known=not unknown):
            click.echo(line)
    for line in unknown:
        click.echo(line, err=as_json)
    ctx.exit(FAILED if any(each.outcome.problem for each in recorded) else 0)


def _rounds(wanted: Sequence[Wanted], environ: Mapping[str, str], results: str | None) -> list[TuneRound]:
    from tensorplay.distributed.offline import configured_results  # noqa: PLC0415 - `--help` need not wait for it

    given = None if results is None else checked_name(results)
    return rounds(wanted, configured_results(environ), given=given)


def _measured(
    turns: Sequence[TuneRound], environ: Mapping[str, str], stall_s: float, *, again: bool
) -> list[_Recorded]:
    """Measure one round after another, telling each outcome as it comes."""
    from tensorplay.cli.holders import holders  # noqa: PLC0415 - `--help` need not wait for NumPy
    from tensorplay.distributed.offline import OfflineTuner  # noqa: PLC0415 - as above

    total = sum(len(turn.signatures) for turn in turns)
    told = 0
    recorded: list[_Recorded] = []
    with Progress(total) as progress:

        def tell(outcome: "TuneOutcome") -> None:
            nonlocal told
            told += 1
            progress.advance()
            progress.line(f"{told} of {total}  {outcome.signature.params}: {_outcome(outcome)}")

        for turn in turns:
            tuner = OfflineTuner(environ=environ, results=turn.targets, stall_s=stall_s, again=again)
            try:
                outcomes = tuner.tune(turn.signatures, tell=tell)
            except OSError as error:
                raise click.ClickException(printable(str(error))) from None
            for device, target in turn.targets.items():
                of_device = [each for each in outcomes if turn.device_of(each.signature) == device]
                held = zip(of_device, holders(target, of_device), strict=True)
                recorded += [_Recorded(_in_the_end(each, holder), target, holder) for each, holder in held]
    return recorded


def _in_the_end(outcome: "TuneOutcome", holder: str | None) -> "TuneOutcome":
    """Return an outcome as it is when all is over: what could not be written may have been, with a later winner."""
    is_written_now = outcome.measured and outcome.kept is None and holder is not None
    return replace(outcome, problem=None) if is_written_now else outcome


def _report(recorded: Sequence[_Recorded], *, is_all_known: bool) -> Iterator[str]:
    """Print the table, and yield what stands below it."""
    if recorded:
        print_table((*signature_columns(), *_WINNER), [_row(each.outcome) for each in recorded])
        yield _closing([each.outcome for each in recorded])
    elif is_all_known:
        yield "nothing to measure: as far as the files say, every winner was really compared"
    else:
        yield "nothing to measure: every winner that the files explain was really compared"
    yield from dict.fromkeys(printable(f"warning: {text}") for each in recorded for text in each.outcome.warnings)
    yield from dict.fromkeys(_place(each) for each in recorded if each.outcome.kernel is not None)


def _place(recorded: _Recorded) -> str:
    if recorded.holder is not None:
        return f"winners: {printable(recorded.holder)}"
    target = printable(recorded.target)
    if recorded.outcome.problem is not None:
        return f"winners: nowhere, since they could not be written to {target}"
    return f"winners: no longer in {target}, which somebody else has changed since"


def _document(recorded: _Recorded) -> dict[str, object]:
    outcome = recorded.outcome
    holder = recorded.holder if outcome.kernel is not None else None
    return asdict(outcome) | {"gain": outcome.gain, "results": holder}


def _row(outcome: "TuneOutcome") -> list[str]:
    return [
        *signature_cells(*outcome.signature),
        outcome.kernel or "-",
        duration(outcome.time_ms),
        multiple(outcome.gain),
        _outcome(outcome),
    ]


def _outcome(outcome: "TuneOutcome") -> str:
    if outcome.problem:
        problem = outcome.problem if outcome.measured else f"not measured: {outcome.problem}"
        return printable("; ".join(filter(None, (problem, outcome.kept))))
    said = outcome.kept or (str(outcome.verdict) if outcome.measured else "recorded before")
    deaths = f", {count(len(outcome.killers), 'killer')} left out" if outcome.killers else ""
    return said + deaths


def _closing(outcomes: Sequence["TuneOutcome"]) -> str:
    measured = sum(outcome.measured for outcome in outcomes)
    failed = sum(outcome.problem is not None and not outcome.measured for outcome in outcomes)
    unwritten = sum(outcome.problem is not None and outcome.measured for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    told = f"{measured} of {count(len(outcomes), 'signature')} measured in {seconds:.1f} s, {failed} could not be"
    return f"{told}; {count(unwritten, 'winner')} could not be written" if unwritten else told
