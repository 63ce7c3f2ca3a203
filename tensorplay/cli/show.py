"""`tensorplay show`: what results and untuned files say, of whichever build, without touching them."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from tensorplay.cli.condition import NUMBER_KEYS, TEXT_KEYS, Condition, parse_condition
from tensorplay.cli.exit_code import FAILED
from tensorplay.cli.product_row import SORT_KEYS, ProductRow
from tensorplay.cli.render import MISSING, count, duration, printable, rate
from tensorplay.cli.row_view import RowView
from tensorplay.cli.table import Column, print_table

if TYPE_CHECKING:
    from tensorplay.cli.tuning_file import TuningFile
    from tensorplay.database.validators import ValidatorMismatch
    from tensorplay.gemm import Signature

__all__ = ["show"]

_ROWS_ON_A_TERMINAL = 50
_LONGEST_LINE = 160

_SIGNATURE = (
    Column("op"),
    Column("dtype"),
    Column("m", is_number=True),
    Column("n", is_number=True),
    Column("k", is_number=True),
    Column("flags"),
)
_WINNER = (Column("kernel", is_whole=True), Column("time", is_number=True), Column("speed", is_number=True))


class _Shown(NamedTuple):
    """One file, and what of it is shown."""

    file: "TuningFile"
    rows: list[ProductRow]
    differences: tuple["ValidatorMismatch", ...]
    undecided: "Mapping[Signature, str]"
    limit: int | None

    @property
    def is_results(self) -> bool:
        return self.file.kind == "results"

    @property
    def noun(self) -> str:
        return "winner" if self.is_results else "untuned signature"


def _conditions(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> list[Condition]:
    del ctx, param
    try:
        return list(map(parse_condition, texts))
    except ValueError as error:
        raise click.BadParameter(printable(str(error))) from None


@click.command(
    short_help="Show the winners of a results file.",
    epilog="\b\nExample:\n  tensorplay show tunableop_resultscpu.csv --where 'm>=16' --sort time --reverse",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--where",
    "conditions",
    callback=_conditions,
    multiple=True,
    metavar="CONDITION",
    help="Only what fulfils this; all of them when given several times. Text "
    f"({', '.join(TEXT_KEYS)}) is compared by = or != with a pattern of * and ?, numbers ({', '.join(NUMBER_KEYS)}; "
    "time in ms) by = != < <= > >=.",
)
@click.option("--sort", type=click.Choice(list(SORT_KEYS)), default="op", show_default=True, help="What to sort by.")
@click.option("--reverse", is_flag=True, help="Sort the other way round.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Rows to show of each file; 0 means all. {_ROWS_ON_A_TERMINAL} on a terminal, else all.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.pass_context
def show(
    ctx: click.Context,
    *,
    files: Sequence[str],
    conditions: Sequence[Condition],
    sort: str,
    reverse: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show the winners of results files, and the signatures of untuned files.

    Files of any build can be shown; none is changed. Also shown: the validators, how they differ from this
    build's, and the lines that could not be read. The exit code is 1 when a file cannot be read or has no line of a
    results or untuned file, else 0.
    """
    from tensorplay.cli.tuning_file import read_tuning_file, why_unread  # noqa: PLC0415 - `--help` need not wait for it

    if limit is None and not as_json and sys.stdout.isatty():
        limit = _ROWS_ON_A_TERMINAL
    view = RowView(conditions, sort, reverse)
    documents: list[dict[str, object]] = []
    unreadable = False
    for position, path in enumerate(files):
        try:
            shown = _look(read_tuning_file(path), view, limit or None)
        except OSError as error:
            unreadable = True
            click.echo(why_unread(path, error), err=True)
            documents.append({"path": path, "error": error.strerror or str(error)})
            continue
        unreadable |= shown.file.kind == "unknown"
        if as_json:
            documents.append(_document(shown))
        else:
            if position:
                click.echo()
            _print(shown)
    if as_json:
        click.echo(json.dumps({"files": documents}, indent=2))
    ctx.exit(FAILED if unreadable else 0)


def _look(file: "TuningFile", view: RowView, limit: int | None) -> _Shown:
    from tensorplay.cli.comparison import undecided  # noqa: PLC0415 - `--help` need not wait for it

    unsettled = undecided(file.path, file.winners, file.validators)
    return _Shown(file, view.rows(file), _differences(file), unsettled, limit)


def _differences(file: "TuningFile") -> tuple["ValidatorMismatch", ...]:
    """Return how the validators differ from this build's; only results files have any."""
    from tensorplay.cli.this_build import this_build  # noqa: PLC0415 - brings NumPy
    from tensorplay.database.validators import compare  # noqa: PLC0415 - as above

    return compare(this_build().validators, file.validators) if file.kind == "results" else ()


def _print(shown: _Shown) -> None:
    for line in _heading(shown):
        click.echo(line)
    rows = shown.rows[: shown.limit]
    if rows:
        columns = (*_SIGNATURE, *_WINNER) if shown.is_results else _SIGNATURE
        # The data type says which op it is, and a kernel id needs the room.
        first = 1 if sys.stdout.isatty() else 0
        print_table(columns[first:], [_cells(row)[first:] for row in rows])
    if len(rows) < len(shown.rows):
        click.echo(f"{count(len(shown.rows) - len(rows), 'more row')} left out; --limit 0 shows all")
    for line in _bad_lines(shown):
        click.echo(line)


def _heading(shown: _Shown) -> Iterator[str]:
    """Yield the lines above the table."""
    file = shown.file
    found = len(file.winners) + len(file.untuned)
    facts = [count(found, shown.noun)] if found or shown.is_results else []
    if len(shown.rows) < found:
        facts.append(f"{len(shown.rows)} of them fulfil the conditions")
    if shown.undecided:
        facts.append(f"{len(shown.undecided)} of them never really compared")
    if file.superseded:
        facts.append(f"{count(file.superseded, 'older line')} replaced by newer ones")
    if file.kind == "empty":
        facts.append("nothing in it yet")
    if file.kind == "unknown":
        facts.append("no line is one of a results or untuned file")
    yield f"{printable(file.path)}: {file.kind}, {', '.join(facts)}"
    if not shown.is_results:
        return
    verdict = "differ from this build's, so that it does not use the file" if shown.differences else "are this build's"
    yield f"validators {verdict}"
    for validator in file.validators:
        yield f"  {printable(validator.name)}: {printable(validator.value)}"
    for difference in shown.differences:
        yield f"  differs: {printable(str(difference))}"
    if shown.undecided:
        yield f"what was never really compared is measured anew by: tensorplay tune --undecided {printable(file.path)}"


def _cells(row: ProductRow) -> list[str]:
    cells = [row.op, row.dtype, str(row.m), str(row.n), str(row.k), row.flags]
    if row.kernel is not None:
        cells += [row.kernel, duration(row.time_ms), rate(row.flops, row.time_ms)]
    return [printable(cell) for cell in cells]


def _bad_lines(shown: _Shown) -> Iterator[str]:
    bad = shown.file.bad_lines
    if not bad:
        return
    yield f"{count(len(bad), 'line')} could not be read:"
    for line in bad[: shown.limit]:
        yield f"  line {line.number}: {printable(line.reason)}"
        yield f"    {printable(line.text, _LONGEST_LINE) or MISSING}"
    if shown.limit is not None and len(bad) > shown.limit:
        yield f"  {count(len(bad) - shown.limit, 'more line')} left out; --limit 0 shows all"


def _document(shown: _Shown) -> dict[str, object]:
    file = shown.file
    rows = shown.rows[: shown.limit]
    return {
        "path": file.path,
        "kind": file.kind.value,
        "validators": [validator._asdict() for validator in file.validators],
        "matches_this_build": not shown.differences if shown.is_results else None,
        "differences": [difference._asdict() for difference in shown.differences],
        "winners": [_fields(row) for row in rows if row.kernel is not None],
        "untuned": [_fields(row) for row in rows if row.kernel is None],
        "undecided": [signature._asdict() | {"verdict": why} for signature, why in shown.undecided.items()],
        "left_out": len(shown.rows) - len(rows),
        "superseded": file.superseded,
        "bad_lines": [{"number": line.number, "text": line.text, "reason": line.reason} for line in file.bad_lines],
    }


def _fields(row: ProductRow) -> dict[str, object]:
    fields: dict[str, object] = {name: getattr(row, name) for name in ProductRow.__slots__}
    return fields if row.kernel is not None else {k: v for k, v in fields.items() if k not in {"kernel", "time_ms"}}
