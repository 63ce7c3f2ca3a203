"""What is wrong, and what to do: the rules of `tensorplay doctor`, on facts that were gathered before."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tensorplay.cli.file_check import FileCheck
from tensorplay.cli.render import count
from tensorplay.cli.tuning_file import FileKind
from tensorplay.runtime.environment import SettingProblem
from tensorplay.runtime.setting_kind import SettingValue

__all__ = ["FileUse", "Finding", "Misnamed", "findings", "notes"]


class Finding(NamedTuple):
    """One thing that is wrong, and its remedy."""

    what: str
    remedy: str


class Misnamed(NamedTuple):
    """A results file that is there under the very name that the environment gives, while that name means another.

    Attributes
    ----------
    path : str
        The file.
    remedy : str
        What makes it the one that is read.
    """

    path: str
    remedy: str


class FileUse(NamedTuple):
    """The files of the runtime, and which of them it would use.

    Attributes
    ----------
    results, sibling, untuned : FileCheck
        The configured results file, the one in its place while that is another build's, and the untuned file.
    log : FileCheck or None
        The diagnostic log, when it is a file.
    target : str
        Where winners would go.
    misnamed : Misnamed or None
        A file that is not read since the ordinal is inserted into its name, where none is there that is read.
    """

    results: FileCheck
    sibling: FileCheck
    untuned: FileCheck
    log: FileCheck | None
    target: str
    misnamed: Misnamed | None = None

    @property
    def listed(self) -> list[FileCheck]:
        """Return every file worth showing: those in use, and a sibling that exists."""
        files = [self.results]
        if self.sibling.exists or self.target == self.sibling.path:
            files.append(self.sibling)
        return [*files, self.untuned, *([self.log] if self.log else [])]


def findings(
    values: Mapping[str, SettingValue],
    ignored: Sequence[SettingProblem],
    sources: Sequence[str],
    files: FileUse,
    *,
    missing: Sequence[str] = (),
) -> list[Finding]:
    """Return what is wrong, by rules that need no file, clock or device.

    Parameters
    ----------
    values : mapping
        Every setting's value, by name.
    ignored : sequence of SettingProblem
        Variables of the environment that count for nothing.
    sources : sequence of str
        The providers of candidates that this device has, and that can offer some here.
    files : FileUse
        What was found on disk.
    missing : sequence of str
        Providers that this device has, and that are not installed.
    """
    return [
        *_of_settings(values, ignored, sources, missing),
        *_of_results(values, files),
        *_of_lines(files),
        *_of_writing(values, files),
    ]


def notes(values: Mapping[str, SettingValue], files: FileUse) -> Iterator[str]:
    """Yield what is not wrong but worth knowing."""
    if not values["enabled"]:
        yield "the feature is off: set TP_TUNABLEOP_ENABLED=1 to use and make winners"
    elif not values["tuning"]:
        yield "tuning is off: recorded winners are replayed, and nothing is measured"
    if files.results.differences and files.sibling.is_ours:
        yield (
            "the results file is another build's and is left as it is; this build's sibling "
            f"{files.sibling.path} has {count(files.sibling.winners, 'winner')}"
        )
    for file in (files.results, files.sibling):
        if file.undecided:
            yield (
                f"{count(file.undecided, 'winner was', 'winners were')} never really compared, on a busy machine or "
                f"with too small a budget: `tensorplay explain {file.path}` says why, and `tensorplay tune --undecided "
                f"{file.path}` measures again"
            )


def _of_settings(
    values: Mapping[str, SettingValue],
    ignored: Sequence[SettingProblem],
    sources: Sequence[str],
    missing: Sequence[str],
) -> Iterator[Finding]:
    for problem in ignored:
        yield Finding(str(problem), f"correct {problem.variable}, or unset it")
    named = values["sources"]
    asked = named if isinstance(named, tuple) else ()
    absent = [str(name) for name in asked if name in missing]
    if absent:
        yield Finding(
            f"sources names {', '.join(absent)}, which {'is' if len(absent) == 1 else 'are'} not installed",
            f"install {' and '.join(absent)}, or name some of {', '.join(sources)}, or unset TP_TUNABLEOP_SOURCES",
        )
    unknown = [str(name) for name in asked if name not in sources and name not in missing]
    if unknown:
        yield Finding(
            f"sources names {', '.join(unknown)}, which this device does not have",
            f"name some of {', '.join(sources)}, or unset TP_TUNABLEOP_SOURCES",
        )


def _of_results(values: Mapping[str, SettingValue], files: FileUse) -> Iterator[Finding]:
    for file in (files.results, files.sibling, files.untuned):
        if file.problem:
            yield Finding(f"{file.path} cannot be read: {file.problem}", "make it a readable file, or name another")
    results = files.results
    if files.misnamed is not None:
        yield Finding(
            f"{files.misnamed.path} is there and is not read: TP_TUNABLEOP_FILENAME={values['filename']} means "
            f"{results.path}, which is not there",
            files.misnamed.remedy,
        )
    if results.differences and not files.sibling.exists:
        tune = "tune again" if values["enabled"] and values["tuning"] else "turn tuning on (TP_TUNABLEOP_ENABLED=1)"
        yield Finding(
            f"{results.path} is not used, since another build or device wrote it: "
            + "; ".join(map(str, results.differences)),
            f"{tune}: winners of this build go to {files.sibling.path}, and both files stay",
        )
    if files.sibling.differences:
        yield Finding(
            f"{files.sibling.path} has this build's name and another's validators: "
            + "; ".join(map(str, files.sibling.differences)),
            "remove it; it was copied or edited",
        )


def _of_lines(files: FileUse) -> Iterator[Finding]:
    if files.untuned.kind is FileKind.RESULTS:
        yield Finding(
            f"{files.untuned.path} is a results file, and is to be an untuned file",
            "name another with TP_TUNABLEOP_UNTUNED_FILENAME",
        )
    for file in (files.results, files.sibling, files.untuned):
        if file.bad_lines and not file.differences:
            first = file.bad_lines[0]
            yield Finding(
                f"{count(len(file.bad_lines), 'line')} of {file.path} cannot be used; line {first.number}: "
                f"{first.reason}",
                f"correct or remove them; `tensorplay show {file.path}` lists all",
            )


def _of_writing(values: Mapping[str, SettingValue], files: FileUse) -> Iterator[Finding]:
    target = files.sibling if files.target == files.sibling.path else files.results
    remedy = "make its folder, or allow writing there, or name another file with {}"
    # Off, the feature writes nothing; but whoever names a file means to turn it on.
    is_meant = values["enabled"] or values["filename"]
    if is_meant and values["tuning"] and not target.writable:
        yield Finding(f"winners cannot be written to {target.path}", remedy.format("TP_TUNABLEOP_FILENAME"))
    if values["enabled"] and values["record_untuned"] and not files.untuned.writable:
        yield Finding(
            f"untuned signatures cannot be written to {files.untuned.path}",
            remedy.format("TP_TUNABLEOP_UNTUNED_FILENAME"),
        )
    if values["verbose"] and files.log is not None and not files.log.writable:
        yield Finding(
            f"diagnostics cannot be written to {files.log.path}", remedy.format("TP_TUNABLEOP_VERBOSE_FILENAME")
        )
