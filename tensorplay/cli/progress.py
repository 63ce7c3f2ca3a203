"""Progress of a long command on standard error: a bar on a terminal, plain lines everywhere else."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from tensorplay.cli.render import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = ["Progress"]


class Progress:
    """A count of steps towards a known total, shown for the length of a `with` block."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._start_bar()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def at(self, what: str) -> None:
        """Say what is being done now; on a terminal only, where the next thing takes its place."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=printable(what))

    def advance(self, steps: int = 1) -> None:
        """Count steps as done."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, steps)

    def line(self, text: str) -> None:
        """Write a line that stays; above the bar when there is one."""
        if self._bar is None:
            click.echo(printable(text), err=True)
        else:
            self._bar.console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def _start_bar(self) -> None:
        from rich import progress as rich_progress  # noqa: PLC0415 - as above
        from rich.console import Console  # noqa: PLC0415 - rich takes longer to import than most commands to run

        self._bar = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}", markup=False),
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=self._total)
        self._bar.start()
