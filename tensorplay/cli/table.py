"""Tables: drawn on a terminal, aligned plain text everywhere else."""

import sys
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import click

__all__ = ["Column", "plain_table", "print_table"]

# Drawing a table takes rich a second for some thousand rows; nobody reads that many on a terminal.
_MOST_DRAWN = 1000


class Column(NamedTuple):
    """The head of a column, and whether its cells are numbers, which stand at the right."""

    title: str
    is_number: bool = False


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Write a table to standard output; every cell must be printable text, and is shown as it is."""
    if sys.stdout.isatty() and len(rows) <= _MOST_DRAWN:
        _draw(columns, rows)
    else:
        click.echo("\n".join(plain_table(columns, rows)))


def plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose columns are aligned with blanks, two between columns, none at the end."""
    titles = [column.title for column in columns]
    widths = [max(map(len, cells)) for cells in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = (
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _draw(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - rich takes longer to import than most commands to run
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        # Where the terminal is narrow, text folds and numbers stay whole.
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(Text(column.title), justify=justify, overflow="fold", no_wrap=column.is_number)
    for row in rows:
        # As Text, so that brackets in a cell are no markup.
        table.add_row(*map(Text, row))
    Console(file=sys.stdout, highlight=False).print(table)
