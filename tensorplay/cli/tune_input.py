"""What `tensorplay tune` is to measure, from the files that it is given, and what it cannot tell of their winners."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from tensorplay.cli.comparison import undecided, unexplained
from tensorplay.cli.render import count, printable
from tensorplay.cli.tune_round import Wanted, home_of
from tensorplay.cli.tuning_file import FileKind, TuningFile, read_tuning_file, why_unread

__all__ = ["chosen_files", "signatures_of", "undecided_of", "what_nothing_explains"]

# Killers lie beside results files, and are named like them.
_COMPANION = ".killers.csv"


def chosen_files(paths: Sequence[str], *, only_results: bool) -> list[TuningFile]:
    """Return the files that are named, else those of the working directory; a usage error for what can be none."""
    pattern = "tunableop_results*.csv" if only_results else "tunableop_untuned*.csv"
    named = paths or sorted(str(path) for path in Path().glob(pattern) if not path.name.endswith(_COMPANION))
    files = [_read(path) for path in named]
    if not only_results:
        return files
    if not files:
        raise click.UsageError("there is no results file here; name files")
    for file in files:
        if file.kind in {FileKind.UNTUNED, FileKind.UNKNOWN}:
            raise click.UsageError(f"{printable(file.path)} is no results file, and has no winners to measure again")
    return files


def signatures_of(files: Sequence[TuningFile]) -> list[Wanted]:
    """Return every signature of the files; a usage error when there are none."""
    found = [Wanted(signature) for file in files for signature in file.untuned]
    found += [Wanted(winner.signature, home_of(file)) for file in files for winner in file.winners]
    if not found:
        named = ", ".join(printable(file.path) for file in files)
        raise click.UsageError(
            f"no signatures in {named}"
            if named
            else "there is no untuned file here; name files, or record one first: "
            "TP_TUNABLEOP_ENABLED=1 TP_TUNABLEOP_TUNING=0 TP_TUNABLEOP_RECORD_UNTUNED=1"
        )
    return found


def undecided_of(files: Sequence[TuningFile]) -> list[Wanted]:
    """Return the signatures of results files whose winners were never really compared."""
    return [
        Wanted(signature, home_of(file))
        for file in files
        for signature in undecided(file.path, file.winners, file.validators)
    ]


def what_nothing_explains(files: Sequence[TuningFile]) -> Iterator[str]:
    """Yield a line for each file with winners of which nobody can say whether they were compared."""
    for file in files:
        unknown = unexplained(file.path, file.winners, file.validators)
        if unknown:
            path = printable(file.path)
            yield (
                f"{path}: nothing explains {count(len(unknown), 'winner')} of {len(file.winners)}, so that nobody can "
                f"say whether they were compared; tensorplay tune --again {path} measures all of that file"
            )


def _read(path: str) -> TuningFile:
    try:
        return read_tuning_file(path)
    except OSError as error:
        raise click.UsageError(why_unread(path, error)) from None
