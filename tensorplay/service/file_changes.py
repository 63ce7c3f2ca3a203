"""Files loaded into memory, and winners saved to files: what is refused, and what is told of what was done.

Everything here may wait for a disk, and belongs on the worker's thread.
"""

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from tensorplay.database.csv_text import BadLine, each_line, each_validator
from tensorplay.database.entries import Raw
from tensorplay.database.record import Entry, Validator
from tensorplay.database.validators import ValidatorMismatch, compare
from tensorplay.errors import TensorPlayError
from tensorplay.gemm import Signature
from tensorplay.runtime.slices import emptied, paced
from tensorplay.service.file_schemas import (
    BadLineModel,
    LoadReport,
    LoadRequest,
    MismatchModel,
    SaveReport,
    SaveRequest,
)
from tensorplay.service.problems import Problem
from tensorplay.service.result_files import ResultFiles, opened, tag_of
from tensorplay.service.taken_names import check_free
from tensorplay.service.watched import WatchedContext

__all__ = ["Conditions", "loaded", "saved"]

_MOST_BAD_LINES = 20
_MOST_MISMATCHES = 100
# So many lines are read in four milliseconds.
_SLICE = 512
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# Plain tuples, as in `Entries`.
_Winners = dict[tuple[str, str], Raw]


class Conditions(tuple[str | None, str | None]):
    """The headers If-Match and If-None-Match of a request that writes a file."""

    __slots__ = ()

    def check(self, status: os.stat_result | None) -> None:
        """Raise a `Problem` unless they fit the state of a file, None for none: 412, or 428 when both are missing."""
        if_match, if_none_match = self
        if if_match is None and if_none_match is None:
            raise Problem(
                428, "if-match-needed", "send If-None-Match: * for a new file, or If-Match with the etag of the old one"
            )
        if status is None:
            if if_match is not None:
                raise Problem(412, "changed", "there is no such file; send If-None-Match: * to make it")
            return
        tag = tag_of(status)
        if if_none_match is not None and ("*" in if_none_match or tag in if_none_match):
            raise Problem(412, "exists", "there is a file of that name; send If-Match with its etag to write over it")
        if if_match is not None and if_match != "*" and tag not in [each.strip() for each in if_match.split(",")]:
            raise Problem(412, "changed", "the file has changed since you have seen it; read GET /files again")


def loaded(files: ResultFiles, context: WatchedContext, name: str, request: LoadRequest) -> LoadReport:
    """Merge a file's winners into memory, and tell what became of them.

    Raises
    ------
    Problem
        404 for no such file; 409 for one of another build, with everything that differs, or one that holds no winners;
        413 for one that is too large.
    """
    found, data = files.read(name)
    if found.kind != "results":
        raise Problem(409, "not-results", "the file holds no winners; POST /jobs tunes what an untuned file names")
    device = _device_for(files, context, [Validator(*pair) for pair in found.validators], request.device, found.device)
    report = context.load_results(device, found.path, data, overwrite=request.overwrite)
    _check_same(report.mismatches)
    return LoadReport(
        name=name,
        device=device,
        merged=report.merged,
        replaced=report.replaced,
        kept=report.kept,
        pinned=report.pinned,
        rejected=report.rejected,
        bad_lines=[BadLineModel(line=each.number, reason=each.reason) for each in report.bad_lines[:_MOST_BAD_LINES]],
        validators=dict(report.validators),
    )


def saved(
    files: ResultFiles, context: WatchedContext, name: str, request: SaveRequest, conditions: Conditions
) -> tuple[SaveReport, bool]:
    """Write a device's winners to a file, merged with what it holds; return what was done, and whether it is new.

    Raises
    ------
    Problem
        412 and 428 by the conditions; 409 for the name of another kind of file, a file of another build or of no
        winners, or what cannot be written; 503 while another process writes it, 507 for a full disk.
    """
    check_free(context, name)
    device, folder = files.folder(request.device)
    path = os.path.join(folder, name)  # noqa: PTH118 - as the context has it
    status = _status_of(path)
    conditions.check(status)
    ours = [Validator(*pair) for pair in context.validators_of(device)]
    known: _Winners = {}
    now: _Winners = {}
    try:
        with _unless_unwritable():
            if status is not None:
                data = _read(folder, name)
                _check_results(data)
                _check_fits(ours, data)
                _collect(data, known)
            with _claimed(path, is_new=status is None):
                context.save_results(device, path)
            data, size = _read(folder, name), Path(path).stat()
        _collect(data, now)
        winners = len(now)
        counted = sum(
            (_counted(part, known, _own(context, device, part)) for part in emptied(now, _SLICE)), Counter[str]()
        )
    finally:
        # What is thrown away as a whole holds up the thread that multiplies, also where the disk was full.
        for _ in chain(emptied(known), emptied(now)):
            pass
    return SaveReport(
        name=name,
        device=device,
        winners=winners,
        added=counted["added"],
        replaced=counted["replaced"],
        kept=counted["kept"],
        size=size.st_size,
        etag=tag_of(size),
        validators={each.name: each.value for each in each_validator(data)},
    ), status is None


def _collect(data: bytes, winners: _Winners) -> None:
    """Add what a file says, one winner of each signature."""
    for each in paced(each_line(data), _SLICE):
        if isinstance(each, Entry):
            winners[each[:2]] = each[:]


def _own(context: WatchedContext, device: str, part: Sequence[Raw]) -> frozenset[tuple[str, str]]:
    """Return which of some signatures have a winner of a device in memory."""
    found = context.recorded_of(Signature(op, params) for op, params, *_ in part)
    return frozenset(each[:2] for each in found if each.device == device)


def _counted(part: Sequence[Raw], known: _Winners, own: frozenset[tuple[str, str]]) -> Counter[str]:
    """Return how many winners of a file were not in it before, are others than before, and are in no memory."""
    return Counter(
        added=sum(each[:2] not in known for each in part),
        replaced=sum(known.get(each[:2], each) != each for each in part),
        kept=sum(each[:2] not in own for each in part),
    )


def _check_results(data: bytes) -> None:
    """Raise a `Problem` for a file that says something, and nothing that a results file says."""
    lines = (each for each in paced(each_line(data), _SLICE) if not isinstance(each, str))
    first = next(lines, None)
    if first is not None and isinstance(first, BadLine) and all(isinstance(each, BadLine) for each in lines):
        raise Problem(409, "not-results", "the file holds no winners, but something else; choose another name")


def _check_fits(ours: Sequence[Validator], data: bytes) -> None:
    """Raise a `Problem` for a file of another build; one that says nothing fits."""
    mismatches = compare(ours, list(dict.fromkeys(each_validator(data))))
    if mismatches and any(not isinstance(each, str) for each in each_line(data)):
        _check_same(mismatches)


def _device_for(
    files: ResultFiles, context: WatchedContext, validators: list[Validator], wanted: str | None, target_of: str | None
) -> str:
    """Return whose winners a file holds: of those that its validators fit, else of whoever writes it, or the first."""
    if wanted is not None:
        return files.folder(wanted)[0]
    for device, _ in context.results_files():
        with suppress(TensorPlayError):
            if not compare([Validator(*pair) for pair in context.validators_of(device)], validators):
                return device
    return target_of or files.folder()[0]


def _check_same(mismatches: Sequence[ValidatorMismatch]) -> None:
    # Those that this build has too say most, and are told first.
    ours = [each for each in mismatches if each.expected is not None]
    others = [each for each in mismatches if each.expected is None]
    found = [
        MismatchModel(
            name=each.name[:400], expected=each.expected, found=[text[:400] for text in each.found[:20]]
        ).model_dump()
        for each in [*ours, *others][:_MOST_MISMATCHES]
    ]
    if found:
        names = ", ".join(str(each["name"])[:80] for each in found[:10])
        detail = f"the file was written by another build or device; `mismatches` says what differs: {names}"
        raise Problem(409, "validators-differ", detail, mismatches=found)


def _status_of(path: str) -> os.stat_result | None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Problem(409, "not-writable", f"the folder cannot be looked into: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise Problem(409, "not-a-file", "what has that name is a link or no file; choose another name")
    return status


def _read(folder: str, name: str) -> bytes:
    with opened(folder, name) as file:
        return file.read()


@contextmanager
def _claimed(path: str, *, is_new: bool) -> Iterator[None]:
    """Make a new file, which nobody else can have made meanwhile; one that stays empty is taken away again."""
    if is_new:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    is_done = False
    try:
        yield
        is_done = True
    finally:
        if is_new and not is_done:
            with suppress(OSError):
                if Path(path).stat().st_size == 0:
                    Path(path).unlink()


@contextmanager
def _unless_unwritable() -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise Problem(412, "exists", "somebody made a file of that name just now") from None
    except TimeoutError:
        raise Problem(
            503, "file-locked", "another process is writing the file; try again", headers={"Retry-After": "2"}
        ) from None
    except OSError as error:
        if error.errno in _FULL:
            raise Problem(507, "no-space", "the disk is full; the file is as it was") from None
        raise Problem(409, "not-writable", f"the file cannot be written: {error.strerror}") from None
