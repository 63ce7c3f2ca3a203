"""`tensorplay bench`: what tuning gains on this machine, each mode of each shape in a fresh process."""

import json
import os
from collections.abc import Sequence

import click

from tensorplay.cli.bench_shape import DEFAULT_SHAPES, BenchShape, parse_shape, read_shapes
from tensorplay.cli.exit_code import FAILED, INTERRUPTED
from tensorplay.cli.render import printable
from tensorplay.cli.table import print_table

__all__ = ["bench"]


@click.command(
    short_help="Time products untuned, while tuned, and replayed.",
    epilog="\b\nExample:\n  tensorplay bench --shape float32:16x1024x512:T:bias --directory demo --fresh",
)
@click.option(
    "--shape",
    "shape_texts",
    multiple=True,
    metavar="SHAPE",
    help="DTYPE:MxNxK, for (m, k) times (k, n), then :T for a right operand used as the transposed view of a (n, k) "
    "weight, and :bias. Repeat it for several; without any, a list for every machine is used.",
)
@click.option(
    "--shapes",
    "shapes_file",
    type=click.Path(exists=True, dir_okay=False),
    help="JSON file of [dtype, m, n, k, bias] rows, alone or as the shapes of an object; the right operand is "
    "transposed.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False),
    default=".",
    show_default=True,
    help="Where the results file is; made when missing.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Fresh processes of each mode; medians and spreads are over them.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, 10_000),
    default=25,
    show_default=True,
    help="Timed batches in each process, of a millisecond at least.",
)
@click.option(
    "--fresh/--keep",
    default=False,
    help="Start without winners (the file there is renamed to end with .old, in place of an older one), or keep those "
    "in the file, which are then not measured again.  [default: keep]",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output, and nothing else.")
@click.pass_context
def bench(
    ctx: click.Context,
    *,
    shape_texts: Sequence[str],
    shapes_file: str | None,
    directory: str,
    repeats: int,
    iterations: int,
    fresh: bool,
    as_json: bool,
) -> None:
    """Time matrix products without tuning, while they are tuned, and when the winners are replayed.

    Each of the three runs in a fresh process, with TP_TUNABLEOP_ENABLED and TP_TUNABLEOP_TUNING set as it needs
    them; the other TP_TUNABLEOP_ variables count while tuning and replaying, but for the file name. The values of
    every product are checked. The exit code is 1 when they are wrong, or a winner was not replayed.
    """
    shapes = _shapes(shape_texts, shapes_file)
    # Imported here, since `--help` need not wait for NumPy.
    from tensorplay.cli.bench_run import BenchRun  # noqa: PLC0415 - see above

    try:
        run = BenchRun(directory, environ=dict(os.environ), repeats=repeats, iterations=iterations, fresh=fresh)
        report = run.time(shapes)
    except OSError as error:
        raise click.ClickException(printable(str(error))) from None
    if as_json and not report.is_interrupted:
        click.echo(json.dumps(report.document(), indent=2))
    elif report.summaries and not as_json:
        print_table(report.columns, report.rows())
        for line in report.closing():
            click.echo(line)
    if report.is_interrupted:
        click.echo(f"interrupted; what was tuned stays in {printable(report.results_file)}", err=True)
        ctx.exit(INTERRUPTED)
    ctx.exit(FAILED if report.has_failed else 0)


def _shapes(texts: Sequence[str], path: str | None) -> list[BenchShape]:
    """Return what the command line asks for, each shape once; a usage error when it is no shape."""
    try:
        given = [parse_shape(text) for text in texts] + (read_shapes(path) if path is not None else [])
    except (OSError, ValueError) as error:
        raise click.UsageError(printable(str(error))) from None
    return list(dict.fromkeys(given or DEFAULT_SHAPES))
