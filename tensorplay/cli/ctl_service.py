"""What every verb of `tensorplay ctl` does alike: ask the service, wait for a job, show what came back."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tensorplay.cli.exit_code import FAILED
from tensorplay.cli.progress import Progress
from tensorplay.cli.render import count, printable
from tensorplay.cli.table import Column, print_table
from tensorplay.cli.web_extra import imported_web

if TYPE_CHECKING:
    from tensorplay.service import Client
    from tensorplay.service.schemas import JobModel

__all__ = ["JOBS", "echo_json", "job_row", "print_rows", "service_of", "started_job"]

JOBS = (Column("id"), Column("state"), Column("done", is_number=True), Column("failed", is_number=True))
"""The columns of jobs."""

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
    ("unpin it first", "`tensorplay ctl unpin ID` lets it be changed"),
    (
        "unpin them first",
        "unpin them first with `tensorplay ctl unpin ID` (`tensorplay ctl results --pinned` lists them)",
    ),
    (", as `Authorization: Bearer`", ", by --token or in TENSORPLAY_TOKEN"),
)


@contextmanager
def service_of(ctx: click.Context) -> "Iterator[tuple[Client, bool]]":
    """Give the client and whether JSON is wanted; what is refused in it ends the command with one line."""
    client = imported_web("tensorplay.service.client")
    try:
        yield ctx.obj
    except client.ServiceError as error:
        if ctx.obj[1] and error.document:
            echo_json(error.document)
        raise click.ClickException(printable(_in_words_of_ctl(str(error)))) from None


def _in_words_of_ctl(text: str) -> str:
    """Return a refusal with what to do in words of this command, instead of those of HTTP."""
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    return text


def started_job(
    ctx: click.Context, client: "Client", job: "JobModel", *, as_json: bool, timeout: float = 3600.0
) -> None:
    """Wait for a job for so many seconds, show it, and end the command: with 1 when it did not measure everything."""
    if timeout:
        job = _awaited(client, job, timeout)
    if as_json:
        echo_json(job.model_dump())
    else:
        print_rows(JOBS, [job_row(job)], "job")
        for failure in job.failures:
            click.echo(printable(f"not measured: {failure.op},{failure.params}: {failure.reason}"))
        if job.reason:
            click.echo(printable(f"ended early: {job.reason}"))
    ctx.exit(FAILED if job.failures or job.state in {"failed", "cancelled"} else 0)


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
    return [job.id, job.state, f"{job.done}/{job.total}", str(len(job.failures))]
