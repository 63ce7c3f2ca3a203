"""What every verb of `tensorplay ctl` does alike: ask the service, wait for a job, show what came back."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tensorplay.cli.exit_code import FAILED
from tensorplay.cli.progress import Progress
from tensorplay.cli.render import MISSING, count, printable
from tensorplay.cli.table import Column, print_table
from tensorplay.cli.web_extra import imported_web

if TYPE_CHECKING:
    from tensorplay.service import Client
    from tensorplay.service.client import ServiceError
    from tensorplay.service.schemas import JobModel

    _TextType = click.ParamType[str]
else:
    # Before click 8.4 it takes no parameter.
    _TextType = click.ParamType

__all__ = [
    "FILE_NAME", "IDENTITY", "JOBS", "echo_json", "job_row", "print_rows", "service_of", "started_job", "tell_failures",
]  # fmt: skip

JOBS = (
    Column("id", is_whole=True), Column("state"),
    *(Column(name, is_number=True) for name in ("done", "skipped", "failed")),
    Column("elapsed", is_number=True), Column("left", is_number=True),
)  # fmt: skip
"""The columns of jobs."""

_HOW_TO_REACH = (
    "--url or TENSORPLAY_URL says where it answers, and `tensorplay serve --discover` lists what answers on this host; "
    "a program does when it is started with TP_TUNABLEOP_DASHBOARD=127.0.0.1:8787"
)
_WORDS = (
    ("GET /untuned lists", "`tensorplay ctl untuned` lists"),
    ("GET /files lists them", "`tensorplay ctl files` lists them"),
    ("GET /settings lists them", "`tensorplay ctl set --help` says more"),
    (
        "POST /jobs tunes what an untuned file names",
        "`tensorplay ctl tune --file NAME` tunes what an untuned file names",
    ),
    ("send If-Match with its etag to write over it", "give --over to write over it"),
    ("send If-None-Match: * to make it", "leave out --over to make it"),
    ("; `mismatches` says what differs", ""),
    ("unpin it first", "`tensorplay ctl unpin ID` lets it be changed"),
    (
        "unpin them first",
        "unpin them first with `tensorplay ctl unpin ID` (`tensorplay ctl results --pinned` lists them)",
    ),
    (
        "send the token, as `Authorization: Bearer` or X-TensorPlay-Token: `service.token`",
        "give the token, by --token or in TENSORPLAY_TOKEN: `service.token`",
    ),
    ("; `errors` says where", ""),
    ("query.sort: Input should be", "--sort should be"),
)


class _Identity(_TextType):
    """What lists call a winner, a rejection or an untuned signature."""

    name = "id"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id as it is; what can be none ends the command before anything is asked."""
        if not re.fullmatch("[0-9a-f]{16}", value):
            self.fail(f"{value!a} is no id; allowed: 16 of 0 to 9 and a to f, as lists have them", param, ctx)
        return value


IDENTITY = _Identity()
"""The type of an ID, but for those of jobs."""


class _FileName(_TextType):
    """What a file of the process may be called."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as it is; what can be none ends the command before anything is asked."""
        from tensorplay.service.file_names import RESULTS_PATTERN, RESULTS_WORDS  # noqa: PLC0415 - as the client is

        if not re.fullmatch(RESULTS_PATTERN, value, re.ASCII):
            self.fail(f"{printable(value)!r} names no file of the process; allowed: {RESULTS_WORDS}", param, ctx)
        return value


FILE_NAME = _FileName()
"""The type of the NAME of a file of winners or signatures."""


@contextmanager
def service_of(ctx: click.Context) -> "Iterator[tuple[Client, bool]]":
    """Give the client and whether JSON is wanted; what is refused in it ends the command with one line.

    What no request can carry is a usage error, before anything is asked.
    """
    for param in ctx.command.params:
        _check_text(ctx, param)
    client, httpx = imported_web("tensorplay.service.client"), imported_web("httpx")
    try:
        yield ctx.obj
    except httpx.InvalidURL as error:
        raise click.UsageError(printable(f"this cannot be asked: {error}")) from None
    except client.ServiceError as error:
        if ctx.obj[1] and error.document:
            echo_json(error.document)
        raise click.ClickException("\n".join(map(printable, _told(error)))) from None


def _check_text(ctx: click.Context, param: click.Parameter) -> None:
    given = ctx.params.get(param.name or "")
    for text in given if isinstance(given, tuple) else (given,):
        if isinstance(text, str) and not _is_text(text):
            raise click.BadParameter(f"{printable(text)!r} is no text in UTF-8", ctx, param)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _told(error: "ServiceError") -> Iterator[str]:
    """Yield a refusal, and a line for everything by which a file differs from this build."""
    yield _in_words_of_ctl(str(error))
    if error.code == "unreachable":
        yield _HOW_TO_REACH
    for each in error.document.get("mismatches", ()):
        expected, found = each.get("expected") or MISSING, ", ".join(each.get("found") or [MISSING])
        yield f"{each.get('name')}: the process has {expected}; the file has {found}"


def _in_words_of_ctl(text: str) -> str:
    """Return a refusal with what to do in words of this command, instead of those of HTTP."""
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    return text


def started_job(
    ctx: click.Context, client: "Client", job: "JobModel", *, as_json: bool, timeout: float = 3600.0
) -> None:
    """Wait for a job for so many seconds, show it, and end the command: with 1 when it did not measure everything.

    So it does when the job is not over by then; without waiting it is enough that it was started.
    """
    if timeout:
        job = _awaited(client, job, timeout)
    is_late = timeout > 0 and job.state not in {"succeeded", "failed", "cancelled"}
    if as_json:
        echo_json(job.model_dump())
    else:
        print_rows(JOBS, [job_row(job)], "job")
        tell_failures(job)
    if is_late:
        click.echo(f"still {job.state} after {timeout:g} s: it goes on, `tensorplay ctl jobs` shows it", err=True)
    ctx.exit(FAILED if is_late or job.failures or job.state in {"failed", "cancelled"} else 0)


def tell_failures(job: "JobModel", before: str = "") -> None:
    """Write what a job found no winner for, and why it ended early, with a text before each line."""
    if job.skipped:
        winners = count(job.skipped, "signature has a winner and was", "signatures have a winner and were")
        click.echo(f"{before}{winners} not measured; --again measures such ones too")
    for failure in job.failures:
        click.echo(printable(f"{before}no new winner: {failure.op},{failure.params}: {failure.reason}"))
    if job.reason:
        click.echo(printable(f"{before}ended early: {job.reason}"))


def print_rows(columns: Sequence[Column], rows: Sequence[Sequence[str]], noun: str | None) -> None:
    """Write a table, and how many rows there are, if they have a name."""
    if rows:
        print_table(columns, [[printable(cell) for cell in row] for row in rows])
    if noun is not None:
        click.echo(count(len(rows), noun))


def echo_json(document: object) -> None:
    """Write a document."""
    click.echo(json.dumps(document, indent=2))


def _awaited(client: "Client", job: "JobModel", timeout: float) -> "JobModel":
    from tensorplay.service.client import ServiceError  # noqa: PLC0415 - needs the web extra

    with Progress(job.total) as progress:
        try:
            done = 0
            while job.state in {"queued", "running", "cancelling"} and timeout > 0:
                begin, step = job.elapsed_s, min(timeout, 1.0)
                try:
                    job = client.wait(job.id, step)
                except ServiceError as error:
                    if error.code != "timeout" or error.status:
                        raise
                    job = client.job(job.id)
                timeout -= max(step, job.elapsed_s - begin)
                progress.advance(job.done - done)
                progress.at(job.current or job.state)
                done = job.done
        except KeyboardInterrupt:
            client.cancel(job.id)
            raise
    return job


def job_row(job: "JobModel") -> list[str]:
    """Return the row of a job."""
    left = MISSING if job.eta_s is None else _seconds(job.eta_s)
    counts = map(str, (job.skipped, job.failed))
    return [job.id, job.state, f"{job.done}/{job.total}", *counts, _seconds(job.elapsed_s), left]


def _seconds(value: float) -> str:
    return f"{value:.1f} s"
