"""`tensorplay ctl explain`: why a signature of a running process runs what it runs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tensorplay.cli.ctl_service import echo_json, print_rows, service_of
from tensorplay.cli.render import MISSING, count, duration, printable

if TYPE_CHECKING:
    from tensorplay.database.explanation import Explanation
    from tensorplay.service.explanation_schemas import ExplanationModel

__all__ = ["explain"]


@click.command(short_help="Show why a signature runs what it runs.")
@click.argument("op")
@click.argument("params")
@click.pass_context
def explain(ctx: click.Context, *, op: str, params: str) -> None:
    """Show why a signature runs what it runs: its winner, all candidates, their times, and why each was dropped."""
    from tensorplay.cli.explanation_view import CANDIDATE_COLUMNS, candidate_rows, facts_of  # noqa: PLC0415 - used here only

    with service_of(ctx) as (client, as_json):
        found = client.explain(op, params)
    if as_json:
        echo_json(found.model_dump())
        return
    click.echo(printable(f"{found.op} {found.params}"))
    for fact in _present(found):
        click.echo(f"  {printable(fact)}")
    measured = _measured(found)
    if measured is None:
        return
    for fact in facts_of(measured, found.kernel):
        click.echo(f"  {printable(fact)}")
    print_rows(CANDIDATE_COLUMNS, candidate_rows(measured, blocks=False), None)
    left_out = (found.left_out or 0) + measured.left_out
    if left_out:
        click.echo(f"{count(left_out, 'slower candidate')} not told of")


def _present(found: "ExplanationModel") -> Iterator[str]:
    """Yield what holds now, whatever a measurement found."""
    if found.kernel is not None:
        yield f"winner: {found.kernel}, {duration(found.time_ms)}, {found.origin}"
    told = {
        "the first choice runs": found.captured,
        "not measured": found.not_measured,
        "in the background": found.background,
    }
    yield from (f"{what}: {why}" for what, why in told.items() if why is not None)
    for each in found.rejections:
        since = f"measured since: {each.healed}" if each.healed else "the first choice runs"
        yield f"rejected: {each.kernel}: {each.reason}; {since}"
    if found.calls:
        yield "calls: " + ", ".join(f"{what} {calls}" for what, calls in found.calls.items())


def _measured(found: "ExplanationModel") -> "Explanation | None":
    """Return what the measurement found, None where nothing says it."""
    from tensorplay.database.explanation import explanation_of  # noqa: PLC0415 - `--help` need not wait for it
    from tensorplay.errors import RecordError  # noqa: PLC0415 - as above
    from tensorplay.gemm import Signature  # noqa: PLC0415 - as above

    if found.verdict is None:
        return None
    report = found.model_dump() | {"candidates": [each.model_dump() for each in found.candidates or ()]}
    try:
        return explanation_of(Signature(found.op, found.params), MISSING, report, found.clocks)
    except RecordError as error:
        raise click.ClickException(printable(f"what the service tells is no explanation: {error}")) from None
