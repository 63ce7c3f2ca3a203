"""The verbs of `tensorplay ctl` that show what happened, and who was started together."""

from typing import TYPE_CHECKING

import click

from tensorplay.cli.ctl_service import echo_json, print_rows, service_of
from tensorplay.cli.render import MISSING, count, duration
from tensorplay.cli.signature_view import signature_cells, signature_columns
from tensorplay.cli.table import Column

if TYPE_CHECKING:
    from tensorplay.service.rank_schemas import RankModel

__all__ = ["VERBS"]

_LOG = (Column("no.", is_number=True), Column("time"), Column("kind"), Column("detail"))
_RANKS = (
    Column("rank", is_number=True), Column("state"), Column("process"), Column("devices"),
    *(Column(name, is_number=True) for name in ("results", "untuned", "rejections")), Column("differs or why not"),
)  # fmt: skip
_WINNER = (Column("rank", is_number=True), Column("kernel", is_whole=True), Column("time", is_number=True))


@click.command(short_help="Show the last thousand events.")
@click.option("--since", type=click.IntRange(min=0), default=0, help="Only events behind this number.")
@click.pass_context
def log(ctx: click.Context, *, since: int) -> None:
    """Show the last thousand events of the runtime, oldest first."""
    with service_of(ctx) as (client, as_json):
        found = client.log(since)
    if as_json:
        echo_json([each.model_dump() for each in found])
        return
    rows = [
        [str(each.number), each.time, each.kind, " ".join(f"{name}={value}" for name, value in each.detail.items())]
        for each in found
    ]
    print_rows(_LOG, rows, "event")


@click.command(short_help="Show the processes that were started together.")
@click.option("--disagreements", is_flag=True, help="Show instead the shapes that ranks recorded other kernels for.")
@click.pass_context
def ranks(ctx: click.Context, *, disagreements: bool) -> None:
    """Show the processes that were started together on that host, and the settings that differ between them."""
    with service_of(ctx) as (client, as_json):
        differing = client.disagreements() if disagreements else []
        found = [] if disagreements else client.ranks()
    if as_json:
        echo_json([each.model_dump() for each in (differing or found)])
    elif disagreements:
        rows = [
            [*signature_cells(each.op, each.params), str(winner.local_rank), winner.kernel, duration(winner.time_ms)]
            for each in differing
            for winner in each.winners
        ]
        print_rows((*signature_columns(), *_WINNER), rows, None)
        click.echo(count(len(differing), "shape"))
    else:
        print_rows(_RANKS, [_rank_row(each) for each in found], "rank")


def _rank_row(rank: "RankModel") -> list[str]:
    differs = ", ".join(f"{name} {value}" for name, value in rank.differs.items())
    if rank.summary is None:
        return [str(rank.local_rank), rank.state, *[MISSING] * 5, rank.reason or differs]
    told = rank.summary
    counts = map(str, (told.results, told.untuned, told.rejections))
    return [str(rank.local_rank), rank.state, str(told.pid), ", ".join(told.devices) or MISSING, *counts, differs]


VERBS = (log, ranks)
"""What is added to `ctl`."""
