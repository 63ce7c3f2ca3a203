"""What runs on this host: each process that serves leaves a record of where it answers, and no secret.

A record outlives a process that is killed; so whoever reads it asks the process itself, and removes those of the dead.
"""

import json
import os
import stat
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tensorplay.errors import SettingError
from tensorplay.service.runtime_folder import check_folder, folders_to_read, made_folder
from tensorplay.service.unix_socket import is_dead, remove_dead

__all__ = ["Found", "Record", "discovered", "forget_dead", "read_records", "write_record"]

_ENDING = ".json"
_MOST_BYTES = 16384
_MOST_RECORDS = 4096
_ASK_S = 1.0
_MOST_ANSWERED = 1 << 20
_AT_ONCE = 16


class Record(BaseModel):
    """Where one process answers, and what it is; never a token.

    Attributes
    ----------
    url : str or None
        Its address, None when it has only a socket.
    socket : str or None
        The socket below the folder of the record, as `job/rank.sock`.
    serves : str
        `process`, or recorded `files`.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    pid: int = Field(ge=1, le=2**31 - 1)
    started_at: str = Field(max_length=40)
    url: str | None = Field(pattern=r"^http://[A-Za-z0-9.:\[\]_-]{1,256}/$")
    socket: str | None = Field(pattern=r"^[A-Za-z0-9_-]{1,40}/[0-9]{1,9}\.sock$")
    serves: Literal["process", "files"]
    job: str | None = Field(max_length=40)
    rank: int | None
    local_rank: int | None
    world_size: int | None
    devices: list[str] = Field(max_length=256)
    version: str = Field(max_length=100)
    command: str = Field(max_length=256)


class Found(NamedTuple):
    """A process that runs.

    Attributes
    ----------
    record : Record
        As it was left, or with the devices that the process tells now.
    socket : Path or None
        Where its socket is.
    is_answering : bool
        Whether it answers in time: one that is stopped, or does not let its threads run, does not.
    """

    record: Record
    socket: Path | None
    is_answering: bool


def write_record(folder: Path, record: Record) -> Path:
    """Leave a record, whole or not at all, and return where; `SettingError` or `OSError` when it cannot be."""
    made_folder(folder)
    path = folder / f"{record.pid}-{record.id}{_ENDING}"
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(record.model_dump_json())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return path


def read_records(folder: Path) -> dict[Path, Record]:
    """Return the records of a folder; none when it is not there. `SettingError` when it may be another user's."""
    try:
        check_folder(folder)
        paths = sorted(folder.glob(f"*{_ENDING}"))[:_MOST_RECORDS]
    except FileNotFoundError:
        return {}
    found = {path: _read(path) for path in paths}
    return {path: record for path, record in found.items() if record is not None}


def discovered(environ: Mapping[str, str], user: int) -> list[Found]:
    """Return what serves on this host under a user, by the time that it started; records of the dead are removed.

    Raises
    ------
    SettingError
        When the folder of records may be another user's.
    """
    used, *others = folders_to_read(environ, user)
    written = read_records(used)
    for folder in others:
        # What another user may have put in a place that is not used at all is no reason to show nothing.
        with suppress(SettingError):
            written |= read_records(folder)
    if not written:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(written))) as pool:
        asked = list(pool.map(_asked, written, written.values()))
    return sorted((each for each in asked if each is not None), key=lambda each: each.record.started_at)


def forget_dead(folder: Path) -> None:
    """Remove what processes left that were killed; `SettingError` when the folder may be another user's."""
    for path, record in read_records(folder).items():
        if not _lives(record.pid):
            _forget(path, _socket(path, record))


def _forget(path: Path, socket: Path | None) -> None:
    with suppress(OSError):
        path.unlink()
    if socket is not None and remove_dead(socket):
        # The last one of its job.
        with suppress(OSError):
            socket.parent.rmdir()


def _socket(path: Path, record: Record) -> Path | None:
    return path.parent / record.socket if record.socket else None


def _read(path: Path) -> Record | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            return Record.model_validate_json(file.read(_MOST_BYTES))
    except (OSError, ValidationError):
        return None


def _asked(path: Path, record: Record) -> Found | None:
    """Ask the process of a record; None, and no record any more, when it is dead."""
    socket = _socket(path, record)
    answer = _answer(record, socket)
    if answer is None:
        return Found(record, socket, is_answering=False)
    if answer.get("id") == record.id:
        told = answer.get("devices")
        devices = [str(each) for each in told] if isinstance(told, list) else record.devices
        return Found(record.model_copy(update={"devices": devices}), socket, is_answering=True)
    # Nobody, or another that has the address by now.
    _forget(path, socket)
    return None


def _answer(record: Record, socket: Path | None) -> dict[str, Any] | None:
    """Return what a process tells of itself: nothing when it is dead, None when it does not answer in time."""
    if socket is not None and is_dead(socket):
        return {}
    transport = httpx.HTTPTransport(uds=str(socket)) if socket else None
    url = "http://localhost/" if socket else record.url
    if url is None:
        return {}
    try:
        with httpx.Client(base_url=url, transport=transport, timeout=_ASK_S, trust_env=False) as client:
            content = _content(client, record)
    except httpx.ConnectError:
        return {}
    except httpx.HTTPError:
        return None if _lives(record.pid) else {}
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _content(client: httpx.Client, record: Record) -> bytes:
    """Return what is answered: nothing when it is more than a service says, `httpx.ReadTimeout` when it is too slow."""
    end, content = time.monotonic() + _ASK_S, b""
    with client.stream("GET", "api/v1") as response:
        if response.status_code in {401, 403} and response.headers.get("content-type", "").endswith("problem+json"):
            # It wants its token, which is not ours to have: whether it lives is all there is to know.
            return json.dumps({"id": record.id}).encode() if _lives(record.pid) else b""
        # As it comes: what is compressed may be any size.
        for part in response.iter_raw():
            content += part
            if len(content) > _MOST_ANSWERED:
                return b""
            if time.monotonic() > end:
                raise httpx.ReadTimeout("it goes on and on", request=response.request)
    return content


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
