"""Tables: drawn on a terminal, rows below each other on one too narrow for that, aligned plain text elsewhere."""

import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Literal, NamedTuple

import click

from tensorplay.cli.render import MISSING

__all__ = ["Column", "least_width", "plain_table", "print_table", "stacked"]

# Drawing a table takes rich a second for some thousand rows; nobody reads that many on a terminal.
_MOST_DRAWN = 1000
# Text that may be broken keeps so many letters in a line, or its title's.
_LEAST_WIDTH = 12
_INDENT = " " * 4


class Column(NamedTuple):
    """The head of a column, and how its cells are drawn.

    Attributes
    ----------
    title : str
        What stands above.
    is_number : bool
        Whether the cells are numbers, which stand at the right and are never broken.
    is_whole : bool
        Whether the cells are texts that people copy, which are never broken: ids, addresses, names, kernel ids.
    """

    title: str
    is_number: bool = False
    is_whole: bool = False


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


def least_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Return the letters of a line that has all that must stay whole, and enough of the rest, without its margins."""
    widths = []
    for column, *cells in zip(columns, *rows, strict=True):
        longest = max(map(len, (column.title, *cells)))
        is_whole = column.is_number or column.is_whole
        widths.append(longest if is_whole else min(longest, max(len(column.title), _LEAST_WIDTH)))
    return sum(widths)


def stacked(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of rows that are too wide for a table: of each what is copied, and what else is known below."""
    head = next((place for place, column in enumerate(columns) if column.is_whole), 0)
    for row in rows:
        yield row[head] if columns[head].is_whole else f"{columns[head].title} {row[head]}"
        facts = [
            f"{column.title}: {cell}"
            for place, (column, cell) in enumerate(zip(columns, row, strict=True))
            if place != head and cell not in {"", MISSING}
        ]
        yield from wrap(
            "; ".join(facts),
            width,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _draw(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - rich takes longer to import than most commands to run
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    console = Console(file=sys.stdout, highlight=False)
    # Beside the letters there is a blank at both edges and between columns, and one more where there is room.
    room = console.width - least_width(columns, rows) - len(columns) - 1
    if room < 0:
        click.echo("\n".join(stacked(columns, rows, console.width)))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, int(room >= len(columns)), 0, 0))
    for column in columns:
        # Where the terminal is narrow, text folds; numbers and what is copied stay whole.
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        is_whole = column.is_number or column.is_whole
        table.add_column(Text(column.title), justify=justify, overflow="fold", no_wrap=is_whole)
    for row in rows:
        # As Text, so that brackets in a cell are no markup.
        table.add_row(*map(Text, row))
    console.print(table)
