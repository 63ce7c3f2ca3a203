"""What others on this host find a process by: the private socket of a rank, and a record of where it answers."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tensorplay.errors import SettingError, SettingWarning
from tensorplay.runtime.notice import logger, warn
from tensorplay.service.discovery import Record, forget_dead, read_records, write_record
from tensorplay.service.placement import placement_of
from tensorplay.service.rank_line import RankLine
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.service.runtime_folder import folder_to_use, made_folder
from tensorplay.service.unix_socket import PrivateSocket

if TYPE_CHECKING:
    from tensorplay.service.state import State

__all__ = ["Presence", "is_held_by"]


def is_held_by(process: int, environ: Mapping[str, str]) -> bool:
    """Return whether the place that the environment tells is that of another process, which serves there."""
    placement = placement_of(environ, process)
    if placement is None:
        return False
    try:
        records = read_records(folder_to_use(environ, os.geteuid())).values()
    except (OSError, SettingError):
        return False
    return any(each.pid == process and each.local_rank == placement.local_rank for each in records)


class Presence:
    """The socket and the record of one service, both gone once it is closed.

    Parameters
    ----------
    line : RankLine
        Where the process stands among others.

    Raises
    ------
    SettingError
        When the folder is refused, on a rank that has nothing but its socket.
    OSError
        When the socket cannot be made, or another process has the place; on such a rank too.
    """

    def __init__(self, line: RankLine) -> None:
        self._line = line
        self._record: Path | None = None
        self.socket: PrivateSocket | None = None
        placement = line.placement
        if placement is None:
            return
        try:
            made_folder(line.folder)
            self.socket = PrivateSocket(line.path(placement.local_rank))
        except (OSError, SettingError) as error:
            if not placement.is_first:
                raise
            # It still answers for itself, under its address.
            warn(f"rank {placement.rank} has no socket: {error}", SettingWarning)

    def announce(self, state: "State", url: str | None) -> None:
        """Leave the record; what stands in its way is logged, since only those who look around miss it."""
        instance, context, placement = state.instance, state.runtime.context, self._line.placement
        try:
            record = Record(
                id=instance.id,
                pid=os.getpid(),
                started_at=instance.started_at,
                url=url,
                socket=f"{placement.job}/{placement.local_rank}.sock" if placement and self.socket else None,
                serves="files" if isinstance(context, RecordedContext) else "process",
                job=placement.job if placement else None,
                rank=placement.rank if placement else instance.rank,
                local_rank=placement.local_rank if placement else None,
                world_size=instance.world_size,
                devices=[device for device, _ in context.results_files()],
                version=instance.version,
                command=instance.command[:256],
            )
            forget_dead(made_folder(self._line.folder))
            self._record = write_record(self._line.folder, record)
        except (OSError, SettingError, ValidationError) as error:
            logger.info("`tensorplay serve --discover` will not find this process: %s", error)

    def close(self) -> None:
        """Take both away; again in vain."""
        if self.socket is not None:
            self.socket.close()
        if self._record is not None:
            with suppress(OSError):
                self._record.unlink()
            self._record = None
