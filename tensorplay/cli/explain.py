"""`tensorplay explain`: how the winners of a results file were chosen, by what was written beside it."""

import json
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import click

from tensorplay.cli.exit_code import FAILED
from tensorplay.cli.render import count, printable
from tensorplay.cli.signature_view import signature_cells, signature_columns
from tensorplay.cli.table import Column, print_table

if TYPE_CHECKING:
    from tensorplay.database.explanation import Explanation
    from tensorplay.gemm import Signature

__all__ = ["explain"]

_ROWS_ON_A_TERMINAL = 20


class _Found(NamedTuple):
    """The explanations that are asked for.

    Attributes
    ----------
    path : str
        The file they are in.
    explanations : list of Explanation
        Those that match.
    kept : int
        How many the file has.
    recorded : dict
        The kernel in the results file, by signature.
    bad_lines : int
        Lines of the file that are no explanation.
    """

    path: str
    explanations: "list[Explanation]"
    kept: int
    recorded: "dict[Signature, str]"
    bad_lines: int


@click.command(
    short_help="Show how winners were chosen.",
    epilog="\b\nExample:\n  tensorplay explain tunableop_resultscpu.csv 'taN_m16_*'",
)
@click.argument("file", metavar="FILE")
@click.argument("signatures", nargs=-1, metavar="[SIGNATURE]...")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Rows to show of each table; 0 means all. {_ROWS_ON_A_TERMINAL} on a terminal, else all.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.pass_context
def explain(ctx: click.Context, *, file: str, signatures: Sequence[str], limit: int | None, as_json: bool) -> None:
    """Show how the winners of a results file were chosen: its candidates, their times, and why each was dropped.

    FILE is a results file, whose explanations lie beside it, or a file of explanations. Without a SIGNATURE each
    winner is one row. A SIGNATURE is params, or op and params with a comma between, and may hold * and ?. The exit
    code is 1 when the file cannot be read, or nothing in it matches.
    """
    if limit is None and not as_json and sys.stdout.isatty():
        limit = _ROWS_ON_A_TERMINAL
    try:
        found = _read(file, signatures)
    except OSError as error:
        from tensorplay.cli.tuning_file import why_unread  # noqa: PLC0415 - `--help` need not wait for it

        click.echo(why_unread(file, error), err=True)
        ctx.exit(FAILED)
    if as_json:
        click.echo(json.dumps(_document(found), indent=2, allow_nan=False))
    else:
        lines = _details(found, limit) if signatures else _overview(found, limit)
        for line in lines:
            click.echo(line)
    ctx.exit(0 if found.explanations else FAILED)


def _read(file: str, patterns: Sequence[str]) -> _Found:
    from tensorplay.cli.tuning_file import read_tuning_file  # noqa: PLC0415 - `--help` need not wait for it
    from tensorplay.database.explanations import explanations_name, parse_explanations  # noqa: PLC0415 - as above
    from tensorplay.database.line_file import read_settled  # noqa: PLC0415 - as above

    is_results = not file.endswith(".jsonl")
    winners = read_tuning_file(file).winners if is_results else ()
    path = explanations_name(file) if is_results else file
    try:
        data, _ = read_settled(path)
    except ValueError as error:
        raise OSError(f"not a file name: {error}") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"nothing says how its winners were chosen: there is no {path}") from None
    said = parse_explanations(data)
    return _Found(
        path=path,
        explanations=[each for each in said.explanations if _matches(each, patterns)],
        kept=len(said.explanations),
        recorded={winner.signature: winner.kernel for winner in winners},
        bad_lines=said.bad_lines,
    )


def _matches(explanation: "Explanation", patterns: Sequence[str]) -> bool:
    texts = (explanation.params, f"{explanation.op},{explanation.params}")
    return not patterns or any(fnmatchcase(text, pattern) for text in texts for pattern in patterns)


def _heading(found: _Found) -> str:
    facts = [count(found.kept, "explanation")]
    if len(found.explanations) < found.kept:
        facts.append(f"{len(found.explanations)} of them fit")
    if found.bad_lines:
        facts.append(f"{count(found.bad_lines, 'line')} could not be read")
    return f"{printable(found.path)}: {', '.join(facts)}"


def _overview(found: _Found, limit: int | None) -> Iterator[str]:
    from tensorplay.cli.explanation_view import OVERVIEW_COLUMNS, overview_row  # noqa: PLC0415 - as above

    yield _heading(found)
    rows = [
        [*map(printable, signature_cells(each.op, each.params)), *overview_row(each)] for each in found.explanations
    ]
    yield from _table((*signature_columns(), *OVERVIEW_COLUMNS), rows, limit)


def _details(found: _Found, limit: int | None) -> Iterator[str]:
    from tensorplay.cli.explanation_view import CANDIDATE_COLUMNS, candidate_rows, facts_of  # noqa: PLC0415 - as above

    yield _heading(found)
    for explanation in found.explanations:
        yield ""
        yield f"{printable(explanation.op)} {printable(explanation.params)}"
        for fact in facts_of(explanation, found.recorded.get(explanation.signature)):
            yield f"  {printable(fact)}"
        yield f"  build: {printable(explanation.build)}"
        yield from _table(CANDIDATE_COLUMNS, candidate_rows(explanation, blocks=_has_blocks()), limit)
        if explanation.left_out:
            yield f"{count(explanation.left_out, 'slower candidate')} not kept in the file"


def _table(columns: Sequence[Column], rows: list[list[str]], limit: int | None) -> Iterator[str]:
    """Write the table, and yield what follows it."""
    shown = rows[: limit or None]
    if shown:
        print_table(columns, shown)
    if len(shown) < len(rows):
        yield f"{count(len(rows) - len(shown), 'more row')} left out; --limit 0 shows all"


def _has_blocks() -> bool:
    """Return whether the output is a terminal that has letters for bars."""
    return sys.stdout.isatty() and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _document(found: _Found) -> dict[str, object]:
    return {
        "path": found.path,
        "explanations": [
            each.to_dict() | {"recorded": found.recorded.get(each.signature)} for each in found.explanations
        ],
        "kept": found.kept,
        "bad_lines": found.bad_lines,
    }
