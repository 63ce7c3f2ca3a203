"""`tensorplay ctl`: the service of a running process, steered from the command line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from tensorplay.cli.ctl_changes import VERBS
from tensorplay.cli.ctl_explain import explain
from tensorplay.cli.ctl_service import (
    FILE_NAME,
    IDENTITY,
    JOBS,
    echo_json,
    job_row,
    print_rows,
    service_of,
    started_job,
    tell_failures,
)
from tensorplay.cli.ctl_watching import VERBS as WATCHING
from tensorplay.cli.render import MISSING, count, duration, multiple, printable
from tensorplay.cli.seconds import Seconds
from tensorplay.cli.signature_view import signature_cells, signature_columns
from tensorplay.cli.table import Column, print_table
from tensorplay.cli.web_extra import imported_web

if TYPE_CHECKING:
    from tensorplay.service.schemas import SettingModel

__all__ = ["ctl"]

_ID = Column("id", is_whole=True)
_CALLS = Column("calls", is_number=True)
_WINNER = (Column("kernel", is_whole=True), Column("time", is_number=True), Column("gain", is_number=True))
# What stands for a value, besides those that an environment variable may have.
_DEFAULT, _NONE = "default", frozenset({"none", "null"})
# What the service takes, too.
_LONGEST_BUDGET_S = 2**31 - 1
_SETTINGS = (Column("setting"), Column("value"), Column("origin"))


@click.group(
    short_help="Watch and steer the tuning of a running process.",
    epilog="\b\nExample:\n  tensorplay ctl --url http://127.0.0.1:8787/ status",
)
@click.option(
    "--url",
    envvar="TENSORPLAY_URL",
    default="http://127.0.0.1:8787/",
    show_default=True,
    help="Where the service answers; TENSORPLAY_URL unless given.",
)
@click.option(
    "--token",
    envvar="TENSORPLAY_TOKEN",
    help="What changes must show; better in TENSORPLAY_TOKEN, since others can read a command line.",
)
@click.option("--json", "as_json", is_flag=True, help="Write what the service answers, as JSON.")
@click.pass_context
def ctl(ctx: click.Context, *, url: str, token: str | None, as_json: bool) -> None:
    """Watch and steer the tuning of a running process over its REST API.

    The process serves it when TP_TUNABLEOP_DASHBOARD is set, or after `tensorplay.service.start()`. The exit code is
    1 when the service cannot be reached or refuses.
    """
    client = imported_web("tensorplay.service.client")
    with _blaming("--token"):
        imported_web("tensorplay.service.client.call").authorization_of(token)
    with _blaming("--url"):
        ctx.obj = ctx.with_resource(client.Client(url, token)), as_json


@contextmanager
def _blaming(option: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise click.BadParameter(printable(str(error)), param_hint=option) from None


@ctl.command(short_help="Show the process, its switches and its counts.")
@click.pass_context
def status(ctx: click.Context) -> None:
    """Show the process, its switches and budgets, and its counts."""
    with service_of(ctx) as (client, as_json):
        instance, stats = client.instance(), client.stats()
        chosen = client.switches() | client.budgets()
    if as_json:
        settings = {name: each.model_dump() for name, each in chosen.items()}
        echo_json({"instance": instance.model_dump(), "settings": settings, "stats": stats})
        return
    rank = MISSING if instance.rank is None else str(instance.rank)
    click.echo(printable(f"{instance.command}, process {instance.pid} of {instance.user} on {instance.host}"))
    click.echo(printable(f"rank {rank}, TensorPlay {instance.version}, since {instance.started_at}"))
    _print_settings(chosen.values())
    print_table((Column("what"), Column("count", is_number=True)), [[name, str(n)] for name, n in stats.items()])


@ctl.command(short_help="Let products run their winners.")
@click.pass_context
def enable(ctx: click.Context) -> None:
    """Let products run their recorded winners."""
    _switch(ctx, enabled=True)


@ctl.command(short_help="Let products run as without TensorPlay.")
@click.pass_context
def disable(ctx: click.Context) -> None:
    """Let products run as without TensorPlay."""
    _switch(ctx, enabled=False)


@ctl.command(short_help="Let products be measured, or not.")
@click.argument("state", type=click.Choice(["on", "off"]))
@click.pass_context
def tuning(ctx: click.Context, *, state: str) -> None:
    """Let products without a winner be measured, or not."""
    _switch(ctx, tuning=state == "on")


# A value may begin with a minus.
@ctl.command(name="set", short_help="Change a setting.", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("value")
@click.pass_context
def set_value(ctx: click.Context, *, name: str, value: str) -> None:
    """Change a setting; its value is written as in its environment variable.

    None and an empty value are taken where they are allowed; `default` undoes all changes: the setting is again what
    the environment of that process said at its start, else its default.
    """
    from tensorplay.errors import SettingError  # noqa: PLC0415 - `--help` need not wait for it

    try:
        parsed = _parsed(name, value)
    except SettingError as error:
        raise click.UsageError(printable(str(error))) from None
    with service_of(ctx) as (client, as_json):
        changed = client.reset(name) if value == _DEFAULT else client.set(name, parsed)
    if as_json:
        echo_json(changed.model_dump())
    else:
        _print_settings([changed])


@ctl.command(short_help="Show the winners.")
@click.option("--sort", default="op", show_default=True, help="What to sort by; with - before it, the other way round.")
@click.option("--limit", type=click.IntRange(min=0), default=50, show_default=True, help="Rows to show; 0 means all.")
@click.option("-q", "text", help="Only what has this in op, params or kernel.")
@click.option("--pinned", is_flag=True, help="Only pinned ones.")
@click.pass_context
def results(ctx: click.Context, *, sort: str, limit: int, text: str | None, pinned: bool) -> None:
    """Show the winners."""
    with service_of(ctx) as (client, as_json):
        filters: Any = ({"q": text} if text else {}) | ({"pinned": True} if pinned else {})
        found = list(client.results(sort=sort, limit=limit or None, **filters))
        total = client.results_page(limit=1, **filters).total if len(found) == limit else len(found)
    if as_json:
        echo_json([each.model_dump() for each in found])
        return
    rows = [
        [each.id, *signature_cells(each.op, each.params), each.kernel, duration(each.time_ms), multiple(each.gain)]
        for each in found
    ]
    print_rows((_ID, *signature_columns(), *_WINNER), rows, None)
    click.echo(count(total, "winner") if len(found) >= total else f"{len(found)} of {count(total, 'winner')}")


@ctl.command(short_help="Show what ran without a winner.")
@click.option("--drop", metavar="ID", type=IDENTITY, help="Take this one off the list.")
@click.option("--clear", is_flag=True, help="Empty the list.")
@click.pass_context
def untuned(ctx: click.Context, *, drop: str | None, clear: bool) -> None:
    """Show the signatures that ran without a winner."""
    with service_of(ctx) as (client, as_json):
        if drop is not None:
            client.forget_untuned(drop)
        if clear:
            client.forget_all_untuned()
        found = client.untuned()
    if as_json:
        echo_json([each.model_dump() for each in found])
        return
    rows = [[each.id, *signature_cells(each.op, each.params), str(each.calls)] for each in found]
    print_rows((_ID, *signature_columns(), _CALLS), rows, "untuned signature")


@ctl.command(short_help="Measure signatures; all untuned ones unless named.")
@click.argument("signatures", nargs=-1, metavar="[OP,PARAMS...]")
@click.option(
    "--file",
    metavar="NAME",
    type=FILE_NAME,
    help="Measure the signatures of this file of that process's folder instead.",
)
@click.option(
    "--budget", type=Seconds(0.0, _LONGEST_BUDGET_S), help="Seconds after which no further signature is begun."
)
@click.option("--again", is_flag=True, help="Measure what has a winner too; what is decided now takes its place.")
@click.option("--no-wait", is_flag=True, help="Start the job, and do not wait for its end.")
@click.option("--timeout", type=Seconds(min=0.0), default=3600.0, show_default=True, help="Seconds to wait at most.")
@click.pass_context
def tune(
    ctx: click.Context,
    *,
    signatures: Sequence[str],
    file: str | None,
    budget: float | None,
    again: bool,
    no_wait: bool,
    timeout: float,
) -> None:
    """Measure signatures, by default all untuned ones; the exit code is 1 when one could not be.

    What has a winner is left as it is, unless with --again.
    A job that is waited for is cancelled by Ctrl-C.
    """
    given = [_signature(text) for text in signatures] or None
    with service_of(ctx) as (client, as_json):
        limits = None if budget is None else {"total_seconds": budget}
        job = client.tune(given, file=file, budget=limits, again=again)
        started_job(ctx, client, job, timeout=0.0 if no_wait else timeout, as_json=as_json)


@ctl.command(short_help="Show the jobs, the newest first.")
@click.option("--cancel", metavar="ID", help="Let this job end after the signature that it measures.")
@click.option("--forget", metavar="ID", help="Take this one, which is over, off the list.")
@click.pass_context
def jobs(ctx: click.Context, *, cancel: str | None, forget: str | None) -> None:
    """Show the jobs, the newest first."""
    with service_of(ctx) as (client, as_json):
        if forget is not None:
            client.forget_job(forget)
        found = [client.cancel(cancel)] if cancel else client.jobs()
    if as_json:
        echo_json([each.model_dump() for each in found])
        return
    print_rows(JOBS, [job_row(each) for each in found], "job")
    for each in found:
        tell_failures(each, f"{each.id} ")


def _parsed(name: str, text: str) -> object:
    """Return the value that a text means; `SettingError` when it means none."""
    from tensorplay.errors import SettingError  # noqa: PLC0415 - as above
    from tensorplay.runtime.settings_table import setting_of  # noqa: PLC0415 - as above

    setting = setting_of(name)
    if text == _DEFAULT:
        return setting.default
    value = None if text.lower() in _NONE else text
    if not value:
        # Nothing that an environment variable could say.
        with suppress(SettingError):
            return setting.check(value)
    return setting.parse(text)


def _switch(ctx: click.Context, **switches: bool) -> None:
    with service_of(ctx) as (client, as_json):
        changed = client.set_switches(**switches)
    if as_json:
        echo_json({name: each.model_dump() for name, each in changed.items()})
    else:
        _print_settings(changed.values())


def _signature(text: str) -> tuple[str, str]:
    op, comma, params = text.partition(",")
    if not comma:
        raise click.UsageError(f"{printable(text)} is no signature; write op,params as an untuned file does")
    return op, params.strip()


def _print_settings(settings: "Any") -> None:
    rows: list[SettingModel] = list(settings)
    print_table(_SETTINGS, [[each.name, printable(_shown(each.value)), each.origin] for each in rows])


def _shown(value: object) -> str:
    """Return a value as `set` takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


for _verb in (*VERBS, *WATCHING, explain):
    ctl.add_command(_verb)
