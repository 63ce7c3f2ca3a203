"""Winners as files for people and programs: CSV that a spreadsheet cannot take for formulas, and JSON lines."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice

from tensorplay.service.row import Row

__all__ = ["as_csv", "as_json_lines", "safe_cell"]

_SLICE = 200
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS = ("op", "params", "kernel", "time_ms", "dtype", "m", "n", "k", "transposed", "bias", "device", "origin")


def safe_cell(value: object) -> object:
    """Return a cell that a spreadsheet shows as it is: text that starts like a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


def as_csv(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a CSV file in slices, so that nobody waits for the whole of it."""
    yield ",".join(_COLUMNS) + "\r\n"
    for part in _slices(rows):
        text = io.StringIO()
        csv.writer(text).writerows([safe_cell(getattr(row, name)) for name in _COLUMNS] for row in part)
        yield text.getvalue()


def as_json_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield one JSON object a line, in slices."""
    for part in _slices(rows):
        yield "".join(json.dumps({name: getattr(row, name) for name in ("id", *_COLUMNS)}) + "\n" for row in part)


def _slices(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while part := list(islice(iterator, _SLICE)):
        yield part
