"""Requests to the processes of a job on this host, each through its private socket, and never for long."""

import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx
from starlette.types import ASGIApp

from tensorplay.errors import SettingError
from tensorplay.runtime.notice import logger
from tensorplay.service.own_user import OwnUserDoor
from tensorplay.service.placement import Placement
from tensorplay.service.problems import Problem
from tensorplay.service.runtime_folder import check_folder
from tensorplay.service.unix_socket import is_full, remove_dead

__all__ = ["CHANGE_S", "READ_S", "Answer", "RankLine"]

READ_S = 1.5
"""Seconds that a rank may take to answer what is only read."""

CHANGE_S = 10.0
"""Seconds that a rank may take for a change."""

_REST_S = 5.0
_MOST_BYTES = 64 << 20
_MOST_RANKS = 1024
_SOCKET = re.compile(r"([0-9]{1,9})\.sock")
_SLOW = "it listens, and does not answer in time: it is stopped, or busy with what lets no thread of Python run"
_HUNG_UP = "it listens, and hangs up: its process is ending, or runs another program"
_NOT_THERE = "it has no service: it has run no product yet, has not called tensorplay.service.start(), or has ended"


class Answer(NamedTuple):
    """What a rank answered; the headers are those of httpx, which finds them in any case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class RankLine:
    """The way to each rank of a job on this host.

    Parameters
    ----------
    placement : Placement or None
        Of this process; None when it was not started with others.
    folder : Path
        Where the sockets of all jobs are.
    """

    def __init__(self, placement: Placement | None, folder: Path) -> None:
        self.placement = placement
        self.folder = folder
        self._silent: dict[int, float] = {}

    def numbers(self) -> list[int]:
        """Return the local rank of each process that is, or should be, there."""
        if self.placement is None:
            return []
        expected = min(self.placement.local_size or 0, _MOST_RANKS)
        return sorted({*range(expected), self.placement.local_rank, *self._present()})

    def check(self, local_rank: int) -> None:
        """Raise a 404 `Problem` for a rank that is not of this job."""
        if local_rank not in self.numbers():
            raise Problem(404, "not-found", "there is no such rank on this host; GET /ranks lists them")

    async def ask(
        self,
        own: ASGIApp,
        local_rank: int,
        path: str,
        *,
        method: str = "GET",
        query: str = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> Answer:
        """Return what a rank answers; this process answers for itself, in the application `own`.

        It may take `limit` seconds, by the method unless given.

        Raises
        ------
        Problem
            502 when it does not listen, or says what is no answer; 504 when it does not answer in time.
        """
        is_read = method == "GET"
        limit = limit or (READ_S if is_read else CHANGE_S)
        self._check_silence(local_rank, is_asked_anyway=not is_read)
        given = dict(headers or {}) | ({"Content-Type": "application/json"} if body is not None else {})
        # The bytes that came: what a server reads as text is of Latin-1, and httpx would take ASCII alone.
        sent = [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in given.items()]
        try:
            # What a client imports when it is first made is no time of the rank.
            async with self._client(own, local_rank) as client, asyncio.timeout(limit):
                # A query may hold what httpx takes for no address, such as a #.
                escaped = quote(query.encode("latin-1", "replace"), safe="!$%&'()*+,/:;=?@[]")
                url = httpx.URL(path=path, query=escaped.encode("ascii") or None)
                request = client.build_request(method, url, content=body, headers=sent)
                response = await client.send(request, stream=True)
                try:
                    answer = Answer(response.status_code, response.headers, await _content(response))
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.TimeoutException):
            self._silent[local_rank] = time.monotonic()
            done = "" if is_read else "; whether it did what it was told is not known"
            raise Problem(504, "rank-too-slow", _SLOW + done) from None
        except (httpx.ConnectError, OSError):
            raise Problem(502, "rank-unreachable", _NOT_THERE) from None
        except httpx.HTTPError:
            raise Problem(502, "rank-failed", _HUNG_UP) from None
        self._silent.pop(local_rank, None)
        return answer

    def _check_silence(self, local_rank: int, *, is_asked_anyway: bool) -> None:
        """Raise a 504 `Problem` for a rank that was silent a moment ago, or that has no room for a connection more.

        So a rank that hangs delays a page once in a while, not each time.
        """
        silent = self._silent.get(local_rank)
        if silent is None:
            return
        # A client that waits for room would keep trying, without a pause.
        if (not is_asked_anyway and time.monotonic() - silent < _REST_S) or is_full(self.path(local_rank)):
            raise Problem(504, "rank-too-slow", _SLOW)

    def _client(self, own: ASGIApp, local_rank: int) -> httpx.AsyncClient:
        transport: httpx.AsyncBaseTransport
        if self._is_own(local_rank):
            # By another name than that of the client which asked us, whose changes are counted already.
            transport = httpx.ASGITransport(OwnUserDoor(own), raise_app_exceptions=False, client=("ranks", 0))
        else:
            # No certificates are read for nothing: a socket of this host speaks no TLS.
            transport = httpx.AsyncHTTPTransport(uds=str(self._checked(local_rank)), verify=False)
        return httpx.AsyncClient(
            transport=transport, base_url="http://localhost/", timeout=CHANGE_S, trust_env=False, follow_redirects=False
        )

    def _checked(self, local_rank: int) -> Path:
        """Return the socket of a rank, in a folder that only this user can have put it into."""
        path = self.path(local_rank)
        try:
            check_folder(self.folder)
            check_folder(path.parent)
        except FileNotFoundError:
            raise Problem(502, "rank-unreachable", _NOT_THERE) from None
        except SettingError as error:
            # Which folder that is, is nobody's business.
            logger.info("the socket of rank %d is not used: %s", local_rank, error)
            detail = "the folder of its socket may be another user's: `tensorplay serve --discover` says more"
            raise Problem(502, "folder-refused", detail) from None
        return path

    def _present(self) -> list[int]:
        try:
            check_folder(self.folder)
            names = [each.name for each in self.path(0).parent.iterdir()]
        except (OSError, SettingError):
            return []
        found = [int(match[1]) for match in map(_SOCKET.fullmatch, names) if match]
        return sorted(found)[:_MOST_RANKS]

    def remove_dead(self, local_rank: int) -> None:
        """Remove the socket of a rank whose process is dead."""
        if not self._is_own(local_rank):
            remove_dead(self.path(local_rank))

    def path(self, local_rank: int) -> Path:
        """Return where a rank listens; a 404 `Problem` when there is no job."""
        if self.placement is None:
            raise Problem(404, "not-found", "this process was not started with others: there are no ranks")
        return self.folder / self.placement.job / f"{local_rank}.sock"

    def _is_own(self, local_rank: int) -> bool:
        return self.placement is not None and local_rank == self.placement.local_rank


async def _content(response: httpx.Response) -> bytes:
    parts, length = [], 0
    async for part in response.aiter_bytes():
        length += len(part)
        if length > _MOST_BYTES:
            raise Problem(502, "rank-too-large", f"it answers with more than {_MOST_BYTES >> 20} MiB")
        parts.append(part)
    return b"".join(parts)
