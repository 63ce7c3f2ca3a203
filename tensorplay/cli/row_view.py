"""Which rows of a file are wanted, and in which order."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tensorplay.cli.condition import Condition
from tensorplay.cli.product_row import SORT_KEYS, ProductRow, row_of_untuned, row_of_winner
from tensorplay.cli.progress import Progress

if TYPE_CHECKING:
    from tensorplay.cli.tuning_file import TuningFile

__all__ = ["RowView"]

# Fewer rows take less than a second.
_WORTH_A_BAR = 20_000
_STEP = 1000


class RowView(NamedTuple):
    """What is asked of the rows: conditions that all must hold, a key of `SORT_KEYS`, and its direction."""

    conditions: Sequence[Condition]
    sort: str
    reverse: bool

    def rows(self, file: "TuningFile") -> list[ProductRow]:
        """Return the rows that are wanted, sorted; progress of a large file shows on a terminal."""
        key = SORT_KEYS[self.sort]
        kept = [(key(row), row) for row in _all_rows(file) if all(condition(row) for condition in self.conditions)]
        present = [(value, row) for value, row in kept if value is not None]
        present.sort(key=lambda pair: pair[0], reverse=self.reverse)
        return [row for _, row in present] + [row for value, row in kept if value is None]


def _all_rows(file: "TuningFile") -> Iterator[ProductRow]:
    total = len(file.winners) + len(file.untuned)
    with Progress(total) if total >= _WORTH_A_BAR else nullcontext() as progress:
        if progress is not None:
            progress.at(f"reading {Path(file.path).name}")
        for number, entry in enumerate(file.winners, 1):
            if progress is not None and number % _STEP == 0:
                progress.advance(_STEP)
            yield row_of_winner(entry)
        yield from map(row_of_untuned, file.untuned)
