"""Winners as files for people and programs: CSV that a spreadsheet cannot take for formulas, and JSON lines."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from fastapi.responses import StreamingResponse

from tensorplay.database.csv_text import formatted_results
from tensorplay.database.record import Validator
from tensorplay.runtime.slices import in_slices, paced
from tensorplay.service.gain_orders import FirstChoices
from tensorplay.service.row import Row, gain_of, saved_of

__all__ = [
    "CSV",
    "JSON_LINES",
    "Maker",
    "as_csv",
    "as_json_lines",
    "as_results_file",
    "attachment",
    "csv_of",
    "safe_cell",
    "streamed",
]

CSV: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "The rows, as a file."}
}
"""How the OpenAPI document describes an export."""

JSON_LINES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}, "description": "An object a line."}
}
"""As `CSV`."""

Maker = Callable[[Callable[[], str | None]], Awaitable[str | None]]
"""Calls a function, and returns what that returns."""

_SLICE = 200
# The last four are as wide as letters of East Asia are, where spreadsheets take them for the others.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_COLUMNS = (
    "op",
    "params",
    "kernel",
    "time_ms",
    "dtype",
    "m",
    "n",
    "k",
    "transposed",
    "bias",
    "device",
    "origin",
    "pinned",
)
# Behind the others, where programs that count columns do not stumble over them.
_FOUND = ("first_choice_ms", "gain", "saved_ms")


def safe_cell(value: object) -> object:
    """Return a cell that a spreadsheet shows as it is: text that starts like a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value


def as_csv(rows: Iterable[Row], first_choices: FirstChoices) -> Iterator[str]:
    """Yield a CSV file in slices, so that nobody waits for the whole of it."""
    return csv_of(
        (*_COLUMNS, *_FOUND, "id"), ((*_cells(row), *found, row.id) for row, found in _told(rows, first_choices))
    )


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield a CSV file of any cells, in slices; every one is safe for a spreadsheet."""
    yield ",".join(columns) + "\r\n"
    for part in in_slices(rows, _SLICE):
        text = io.StringIO()
        csv.writer(text).writerows([safe_cell(cell) for cell in row] for row in part)
        yield text.getvalue()


def as_json_lines(rows: Iterable[Row], first_choices: FirstChoices) -> Iterator[str]:
    """Yield one JSON object a line, in slices."""
    names = ("id", *_COLUMNS, *_FOUND)
    for part in in_slices(_told(rows, first_choices), _SLICE):
        values = ((row.id, *_cells(row), *found) for row, found in part)
        yield "".join(json.dumps(dict(zip(names, each, strict=True))) + "\n" for each in values)


def _cells(row: Row) -> list[object]:
    return [getattr(row, name) for name in _COLUMNS]


def _told(rows: Iterable[Row], first_choices: FirstChoices) -> Iterator[tuple[Row, tuple[float | None, ...]]]:
    """Yield each row with what is known of its first choice, in the order of `_FOUND`."""
    for part in in_slices(rows, _SLICE):
        known = first_choices([row.signature for row in part])
        for row in part:
            first_ms = known.get(row.signature)
            yield row, (first_ms, gain_of(row.time_ms, first_ms), saved_of(row.time_ms, first_ms))


def as_results_file(validators: Iterable[Validator], rows: Iterable[Row]) -> Iterator[str]:
    """Yield exactly what a results file has of the rows, in slices."""
    lines = formatted_results(validators, paced((row.op, row.params, row.kernel, row.time_ms) for row in rows))
    for part in in_slices(lines, _SLICE):
        yield "".join(part)


def streamed(
    parts: Iterable[str], media_type: str, headers: Mapping[str, str], *, made_by: Maker | None = None
) -> StreamingResponse:
    """Return the answer that is sent part by part.

    Each part is made by `made_by`, which is for parts that wait for something; else on the loop's own thread.
    """

    async def here(make: Callable[[], str | None]) -> str | None:
        await asyncio.sleep(0)
        return make()

    async def each() -> AsyncIterator[str]:
        make = partial(next, iter(parts), None)
        while (part := await (made_by or here)(make)) is not None:
            yield part

    return StreamingResponse(each(), media_type=media_type, headers=dict(headers))


def attachment(name: str) -> dict[str, str]:
    """Return the header that lets a browser save an answer under a name."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
