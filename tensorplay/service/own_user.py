"""Who may speak through the private socket: processes of this user, as the kernel says, and they need no token.

Whoever runs as this user can read the token out of this process anyway. Everybody else is kept out twice: by the mode
of the folder, and by the user that the kernel names for a connection.
"""

import asyncio
import os
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from tensorplay.service.connection import Connection
from tensorplay.service.unix_socket import peer_of

__all__ = ["OwnUserDoor", "OwnUserProtocol", "is_own_user"]

_KEY = "tensorplay.own_user"


class OwnUserProtocol(Connection):
    """HTTP for connections of this user; those of another end before a byte is read."""

    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as it is there
        """Begin, or end at once."""
        if _peer_user(transport) != os.geteuid():
            self._is_refused = True
            transport.abort()
            return
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End what has begun."""
        if not self._is_refused:
            super().connection_lost(exc)


class OwnUserDoor:
    """The way into an application for requests that come from this user, or from this process itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Mark a request, in what no client can write, and pass it on."""
        await self._app({**scope, _KEY: True}, receive, send)


def is_own_user(scope: Scope) -> bool:
    """Return whether a request came through the door."""
    return scope.get(_KEY) is True


def _peer_user(transport: Any) -> int | None:
    connection = transport.get_extra_info("socket")
    try:
        return peer_of(connection)[1]
    except (AttributeError, OSError):
        return None
