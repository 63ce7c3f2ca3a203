"""The verbs of `tensorplay ctl` that steer winners, lists and files."""

import sys
from io import BytesIO, IOBase
from typing import Any, BinaryIO

import click

from tensorplay.cli.ctl_service import FILE_NAME, IDENTITY, echo_json, print_rows, service_of, started_job
from tensorplay.cli.render import MISSING, count, duration, printable
from tensorplay.cli.table import Column

__all__ = ["VERBS"]

_KINDS = ("results.csv", "results.jsonl", "results", "rejections.csv", "untuned.csv", "untuned")
_REJECTIONS = (
    Column("id", is_whole=True),
    Column("what"),
    Column("reason"),
    Column("met", is_number=True),
    Column("healed"),
)
_DEVICES = (Column("device"), *(Column(name, is_number=True) for name in ("results", "untuned", "rejections")))
_FILES = (
    Column("name", is_whole=True),
    Column("holds"),
    Column("device"),
    Column("size", is_number=True),
    Column("matches"),
)
_HISTORY = (Column("since"), Column("kernel", is_whole=True), Column("time", is_number=True), Column("origin"))
_COUNTS = (Column("what"), Column("count", is_number=True))


@click.command(short_help="Keep a winner, whatever is measured or loaded.")
@click.argument("result_id", metavar="ID", type=IDENTITY)
@click.pass_context
def pin(ctx: click.Context, *, result_id: str) -> None:
    """Keep a winner as it is: neither measuring nor a file replaces it."""
    with service_of(ctx) as (client, as_json):
        pinned = client.pin(result_id)
    if as_json:
        echo_json(pinned.model_dump())
    else:
        click.echo(printable(f"{pinned.op},{pinned.params} is pinned to {pinned.kernel}"))


@click.command(short_help="Let a winner be changed again.")
@click.argument("result_id", metavar="ID", type=IDENTITY)
@click.pass_context
def unpin(ctx: click.Context, *, result_id: str) -> None:
    """Let a winner be changed again."""
    with service_of(ctx) as (client, as_json):
        known = client.result(result_id)
        client.unpin(result_id)
    _say(f"{known.op},{known.params} is no longer pinned", as_json=as_json)


@click.command(short_help="Let a signature run a kernel of your choice.")
@click.argument("result_id", metavar="ID", type=IDENTITY)
@click.argument("kernel")
@click.pass_context
def override(ctx: click.Context, *, result_id: str, kernel: str) -> None:
    """Let a signature run a kernel of your own choice, a kernel id or Default, if that can be built."""
    with service_of(ctx) as (client, as_json):
        found = client.override(result_id, kernel)
    if as_json:
        echo_json(found.model_dump())
    else:
        click.echo(printable(f"{found.op},{found.params} runs {found.kernel}"))


@click.command(short_help="Go back from an override.")
@click.argument("result_id", metavar="ID", type=IDENTITY)
@click.pass_context
def restore(ctx: click.Context, *, result_id: str) -> None:
    """Go back from an override to the winner before it, or forget it where none is known."""
    with service_of(ctx) as (client, as_json):
        known = client.result(result_id)
        client.withdraw_override(result_id)
        # Where no winner is known from before, there is none now.
        now = [each for each in client.results(op=known.op, q=known.params) if each.id == result_id]
    runs = f"runs {now[0].kernel} again" if now else "is forgotten: no winner is known from before"
    _say(f"{known.op},{known.params} {runs}", as_json=as_json)


@click.command(short_help="Drop a winner, so that it is measured anew.")
@click.argument("result_id", metavar="[ID]", type=IDENTITY, required=False)
@click.option("--all", "every", is_flag=True, help="Forget every winner; refused while any is pinned.")
@click.pass_context
def forget(ctx: click.Context, *, result_id: str | None, every: bool) -> None:
    """Drop a winner in memory and file, so that its product is measured anew."""
    if every == (result_id is not None):
        raise click.UsageError("name one ID, or give --all")
    with service_of(ctx) as (client, as_json):
        if result_id is None:
            forgotten = count(client.results_page(limit=1).total, "winner")
            client.forget_all()
        else:
            known = client.result(result_id)
            forgotten = f"{known.op},{known.params}"
            client.forget(result_id)
    _say(f"forgotten: {forgotten}", as_json=as_json)


@click.command(short_help="Show the winners that a signature had.")
@click.argument("result_id", metavar="ID", type=IDENTITY)
@click.pass_context
def history(ctx: click.Context, *, result_id: str) -> None:
    """Show the winners that a signature is known to have had, oldest first."""
    with service_of(ctx) as (client, as_json):
        found = client.result(result_id).history
    if as_json:
        echo_json([each.model_dump() for each in found])
        return
    rows = [[each.time or MISSING, each.kernel, duration(each.time_ms), each.origin] for each in found]
    print_rows(_HISTORY, rows, "winner")


@click.command(short_help="Show the winners that did not run, and why.")
@click.option("--retune", metavar="ID", type=IDENTITY, help="Measure this one anew, and wait for it.")
@click.option("--clear", is_flag=True, help="Empty the list.")
@click.pass_context
def rejections(ctx: click.Context, *, retune: str | None, clear: bool) -> None:
    """Show the winners that did not run, and what files were refused for."""
    with service_of(ctx) as (client, as_json):
        if retune is not None:
            started_job(ctx, client, client.retune(retune), as_json=as_json)
            return
        if clear:
            client.clear_rejections()
        found = client.rejections()
    if as_json:
        echo_json([each.model_dump() for each in found])
        return
    rows = [
        [each.id, each.params or each.file or MISSING, each.reason, str(each.count), each.healed or MISSING]
        for each in found
    ]
    print_rows(_REJECTIONS, rows, "rejection")


@click.command(short_help="Show the files of that process's folder.")
@click.pass_context
def files(ctx: click.Context) -> None:
    """Show the results files, untuned files and files of explanations."""
    with service_of(ctx) as (client, as_json):
        found = client.files()
    if as_json:
        echo_json([each.model_dump() for each in found])
        return
    matches = {True: "yes", False: "no", None: MISSING}
    sizes = [MISSING if each.size is None else str(each.size) for each in found]
    rows = [
        [each.name, each.kind, each.device or MISSING, size, matches[each.matches]]
        for each, size in zip(found, sizes, strict=True)
    ]
    print_rows(_FILES, rows, "file")


@click.command(short_help="Show the devices that were met.")
@click.pass_context
def devices(ctx: click.Context) -> None:
    """Show the devices that were met, with what a results file of each must match."""
    with service_of(ctx) as (client, as_json):
        found = client.devices()
    if as_json:
        echo_json([each.model_dump() for each in found])
        return
    rows = [[each.device, *map(str, (each.results, each.untuned, each.rejections))] for each in found]
    print_rows(_DEVICES, rows, "device")
    pairs = [[each.device, *pair] for each in found for pair in each.validators.items()]
    print_rows((Column("device"), Column("validator"), Column("value")), pairs, None)


@click.command(short_help="Show versions, and what is ready and spent.")
@click.pass_context
def runtime(ctx: click.Context) -> None:
    """Show versions, what is ready to run, and what is spent of the time to measure in."""
    with service_of(ctx) as (client, as_json):
        found = client.runtime()
    if as_json:
        echo_json(found.model_dump())
        return
    packages = [f"{name} {version}" for name, version in found.packages.items()]
    click.echo(printable(", ".join([f"TensorPlay {found.version}", f"Python {found.python}", *packages])))
    click.echo(f"{count(found.plans, 'plan')} ready, {found.spent_tuning_seconds:g} s spent on measuring")
    if found.variables:
        click.echo(printable(f"set in its environment: {', '.join(found.variables)}"))


@click.command(short_help="Let every product be decided anew.")
@click.pass_context
def reresolve(ctx: click.Context) -> None:
    """Let every product be decided anew at its next call, by what is recorded and set then."""
    with service_of(ctx) as (client, as_json):
        plans = client.reresolve()
    echo_json({"plans": plans}) if as_json else click.echo(f"{count(plans, 'plan')} let go of")


@click.command(short_help="Merge a results file into its memory.")
@click.argument("name", type=FILE_NAME)
@click.option("--overwrite", is_flag=True, help="Let its winners replace those in memory; pinned ones stay.")
@click.pass_context
def load(ctx: click.Context, *, name: str, overwrite: bool) -> None:
    """Merge a results file of that process's folder into its memory."""
    with service_of(ctx) as (client, as_json):
        report = client.load_file(name, overwrite=overwrite)
    _show_counts(report, ("merged", "replaced", "kept", "pinned", "rejected"), as_json=as_json)


@click.command(short_help="Write the winners to a file.")
@click.argument("name", type=FILE_NAME, required=False)
@click.option("--over", is_flag=True, help="Write over a file that is there, merged with what it holds.")
@click.pass_context
def save(ctx: click.Context, *, name: str | None, over: bool) -> None:
    """Write the winners to a new file of that process's folder; without a name, to the files that they go to."""
    with service_of(ctx) as (client, as_json):
        if name is None:
            written = client.save_files()
            echo_json({"written": written}) if as_json else click.echo("written" if written else "not written")
            ctx.exit(0 if written else 1)
        report = client.save_file(name, if_match="*" if over else None)
    _show_counts(report, ("winners", "added", "replaced", "kept"), as_json=as_json)


@click.command(short_help="Write winners, rejections or untuned signatures.")
@click.option("--kind", type=click.Choice(_KINDS), default=_KINDS[0], show_default=True, help="What is exported.")
@click.option("--output", type=click.File("wb"), default="-", help="Where to; standard output unless given.")
@click.option("-q", "text", help="Only winners that have this in op, params or kernel.")
@click.pass_context
def export(ctx: click.Context, *, kind: Any, output: BinaryIO, text: str | None) -> None:
    """Write winners, rejections or untuned signatures as CSV, as JSON lines, or as TensorPlay's own files have them."""
    with service_of(ctx) as (client, _):
        filters: Any = {"q": text} if text else {}
        # A file is opened when there is something to be written to it, and asking it would do so at once.
        if isinstance(output, IOBase) and output.isatty():
            # What is from the files of others may be words that a terminal obeys.
            held = BytesIO()
            client.export(held, kind, **filters)
            _show(held.getvalue())
        else:
            client.export(output, kind, **filters)
    sys.stdout.flush()


def _show(data: bytes) -> None:
    for line in data.splitlines():
        click.echo(printable(line.decode(errors="backslashreplace")))


def _say(sentence: str, *, as_json: bool) -> None:
    """Write what was done; not with JSON, which is what the service answers: nothing."""
    if not as_json:
        click.echo(printable(sentence))


def _show_counts(report: Any, names: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        echo_json(report.model_dump())
    else:
        print_rows(_COUNTS, [[name, str(getattr(report, name))] for name in names], None)


VERBS = (
    pin,
    unpin,
    override,
    restore,
    forget,
    history,
    rejections,
    devices,
    runtime,
    reresolve,
    files,
    load,
    save,
    export,
)
"""What is added to `ctl`."""
