"""`tensorplay serve`: recorded files in a browser, with no process that multiplies; or what serves here already."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType

import click

from tensorplay.cli.discover import show_discovered
from tensorplay.cli.render import printable
from tensorplay.cli.web_extra import imported_web

__all__ = ["serve"]

_LOOK_AGAIN_S = 0.5


@click.command(
    short_help="Show recorded files in a browser.",
    epilog="\b\nExamples:\n  tensorplay serve tunableop_results0.csv --port 8787\n  tensorplay serve --discover",
)
@click.argument("files", nargs=-1, type=click.Path(dir_okay=False))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; any other needs a token.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; one that is free unless given."
)
@click.option(
    "--token",
    envvar="TENSORPLAY_TOKEN",
    help="What reading needs where others reach the address; better in TENSORPLAY_TOKEN, since others can read a "
    "command line.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A name that it is reached by too, as of a proxy; those of TENSORPLAY_HOSTS unless given.",
)
@click.option("--discover", is_flag=True, help="Serve nothing; list what serves on this host under this user.")
@click.option("--json", "as_json", is_flag=True, help="With --discover: write the list as JSON.")
def serve(
    *,
    files: Sequence[str],
    host: str,
    port: int,
    token: str | None,
    names: Sequence[str],
    discover: bool,
    as_json: bool,
) -> None:
    """Serve the dashboard and the REST API over results and untuned files, which are never changed.

    Without files, those of the working directory that are named so by default. Files are read again when they change,
    and may come later. Ends with Ctrl-C.
    """
    if discover and files:
        raise click.UsageError("--discover lists what serves already, and takes no files")
    if as_json and not discover:
        raise click.UsageError("--json goes with --discover")
    if discover:
        show_discovered(as_json=as_json)
        return
    server = imported_web("tensorplay.service.server")
    recorded = imported_web("tensorplay.service.recorded_context")
    context = recorded.RecordedContext(files or sorted(str(path) for path in Path().glob("tunableop_*.csv")))
    for warning in _not_shown(files):
        click.echo(f"warning: {warning}", err=True)
    from tensorplay.errors import SettingError  # noqa: PLC0415 - `--help` need not wait for it

    host_names = imported_web("tensorplay.service.host_names")
    with _until_ended() as ended:
        try:
            hosts = frozenset(names) or host_names.hosts_of(os.environ)
            service = server.start(host, port, token=token or None, read_only=True, context=context, hosts=hosts)
        except SettingError as error:
            raise click.UsageError(printable(_in_words_of_serve(str(error)))) from None
        except OSError as error:
            reason = error.strerror or os.strerror(error.errno or 0)
            raise click.ClickException(printable(f"{host} port {port}: {reason}; try another --port")) from None
        with service:
            click.echo(service.url)
            if service.needs_token_to_read:
                click.echo(f"this link lets one browser in: {service.login_url}")
            while service.is_running and not ended.wait(_LOOK_AGAIN_S):
                context.refresh()


def _in_words_of_serve(text: str) -> str:
    """Return a refusal in words of this command, instead of those of `tensorplay.service.start()`."""
    return text.replace("`token` of start()", "--token")


def _not_shown(files: Sequence[str]) -> Iterator[str]:
    """Yield why the files that were named and have nothing to show have not; they are looked at again all the time."""
    from tensorplay.cli.tuning_file import FileKind, read_tuning_file, why_unread  # noqa: PLC0415 - as above

    for file in files:
        try:
            if read_tuning_file(file).kind is FileKind.UNKNOWN:
                yield f"{printable(file)} is no results or untuned file: nothing of it is shown"
        except OSError as error:
            yield f"{why_unread(file, error)}; it is shown when it can be"


@contextmanager
def _until_ended() -> Iterator[Event]:
    """Give what is set by Ctrl-C, and by whoever ends containers and services."""
    ended = Event()

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
