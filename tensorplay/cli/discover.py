"""`tensorplay serve --discover`: what serves on this host under this user."""

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tensorplay.cli.render import printable
from tensorplay.cli.table import Column, print_table
from tensorplay.cli.web_extra import imported_web

if TYPE_CHECKING:
    from tensorplay.service.discovery import Found

__all__ = ["show_discovered"]

_COLUMNS = (
    Column("pid", is_number=True),
    Column("job"),
    Column("rank", is_number=True),
    Column("device"),
    Column("state"),
    Column("address", is_whole=True),
    Column("started"),
    Column("version"),
    Column("command"),
)
_NOTHING = (
    "Nothing serves here under this user. Start a program with TP_TUNABLEOP_DASHBOARD=127.0.0.1:8787, call "
    "tensorplay.service.start() in it, or run tensorplay serve for recorded files."
)


def show_discovered(*, as_json: bool) -> None:
    """Write what runs, as a table or as JSON; a `ClickException` when the records may be another user's."""
    discovery = imported_web("tensorplay.service.discovery")
    from tensorplay.errors import SettingError  # noqa: PLC0415 - `--help` need not wait for it

    try:
        found = discovery.discovered(os.environ, os.geteuid())
    except SettingError as error:
        raise click.ClickException(printable(str(error))) from None
    if as_json:
        click.echo(json.dumps([_document(each) for each in found], indent=2))
    elif found:
        print_table(_COLUMNS, [_row(each) for each in found])
    else:
        click.echo(_NOTHING)


def _document(found: "Found") -> dict[str, object]:
    return found.record.model_dump() | {"socket": _text(found.socket), "is_answering": found.is_answering}


def _row(found: "Found") -> Sequence[str]:
    record = found.record
    cells = (
        record.pid,
        record.job or "-",
        "-" if record.rank is None else record.rank,
        ",".join(record.devices) or "-",
        ("answers" if found.is_answering else "does not answer"),
        record.url or f"unix:{found.socket}",
        record.started_at,
        record.version,
        record.command if record.serves == "process" else f"{record.command} (files)",
    )
    return [printable(str(cell)) for cell in cells]


def _text(value: object) -> str | None:
    return None if value is None else str(value)
