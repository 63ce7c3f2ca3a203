"""The command `tensorplay`: its version, and the commands below it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import Any

import click

from tensorplay.cli.bench import bench
from tensorplay.cli.ctl import ctl
from tensorplay.cli.doctor import doctor
from tensorplay.cli.exit_code import FAILED, INTERRUPTED
from tensorplay.cli.explain import explain
from tensorplay.cli.serve import serve
from tensorplay.cli.show import show
from tensorplay.cli.tune import tune
from tensorplay.version import __version__

__all__ = ["main"]


class _Commands(click.Group):
    """A group whose commands end like every other program when they are interrupted, or nobody takes what they say."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:  # passed on as they are
        """Read the command line, and answer to `--version` and `--help`."""
        with _ending_in_one_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:  # what a command returns, which nobody reads
        """Run the command that was asked for."""
        with _ending_in_one_line():
            result = super().invoke(ctx)
            sys.stdout.flush()
        return result


@contextlib.contextmanager
def _ending_in_one_line() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        # A full disk under a redirected output, say: what it would have said last, in one line.
        _abandon_output()
        click.echo(f"tensorplay: {error}", err=True)
        raise click.exceptions.Exit(FAILED) from None


def _abandon_output() -> None:
    """Send the rest to nowhere, so that the interpreter's last flush does not fail once more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  tensorplay bench --directory demo",
)
@click.version_option(__version__, prog_name="tensorplay", message="%(prog)s %(version)s")
def main() -> None:
    """Measure the kernels of each matrix product once, and replay the winner ever after."""
    if sys.stdout is None:  # closed by the caller, as `>&-` does
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the life of the process
    # A file may hold what the terminal's encoding has no letters for: an escape says more than a traceback.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


main.add_command(bench)
main.add_command(tune)
main.add_command(show)
main.add_command(explain)
main.add_command(serve)
main.add_command(ctl)
main.add_command(doctor)
