"""Whether a winner of `tensorplay tune` can be written where it is to go, asked before anything is measured."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import click

from tensorplay.cli.render import printable
from tensorplay.cli.tune_round import TuneRound

__all__ = ["check_targets", "checked_name"]


def checked_name(name: str) -> str:
    """Return the name of a results file that a person gave; a usage error for what can be none."""
    from tensorplay.errors import SettingError  # noqa: PLC0415 - `--help` need not wait for it
    from tensorplay.runtime.settings_table import setting_of  # noqa: PLC0415 - as above

    if not name:
        raise click.BadParameter("it is empty; name a file, or leave the option out", param_hint="--results")
    try:
        checked = str(setting_of("filename").check(name))
    except SettingError:
        raise click.BadParameter(f"{printable(name)!r} names no file; give its path", param_hint="--results") from None
    # With an ordinal in it, the name of a device or a folder would be that of a file beside it, which nobody meant.
    reason = _why_no_file(checked)
    if reason is not None:
        raise click.BadParameter(f"{printable(name)!r}: {reason}", param_hint="--results")
    return checked


def check_targets(turns: Sequence[TuneRound]) -> None:
    """End the command with a `ClickException` where a results file could not be written."""
    for target in dict.fromkeys(target for turn in turns for target in turn.targets.values()):
        reason = _why_unwritable(target)
        if reason is not None:
            place = printable(target)
            raise click.ClickException(f"nothing was measured: winners could not be written to {place}: {reason}")


def _why_no_file(path: str) -> str | None:
    """Return why a path can be none of a file, None where it is one or could be."""
    try:
        is_file = stat.S_ISREG(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error.strerror
    return None if is_file else "it is no regular file; name another one"


def _why_unwritable(path: str) -> str | None:
    if Path(os.path.realpath(path)).parent.is_dir():
        # In place of a folder its sibling is written.
        return None if Path(path).is_dir() else _why_no_file(path)
    return "there is no such folder; make it or name another file"
