"""What every answer says of itself: which request it answers, and which version of TensorPlay gave it.

A client, or a proxy before it, may name its request by `X-Request-ID`; a name that is none is replaced by one of ours.
The same name is in problem documents, in the log of what failed, and in what other ranks are asked for it.
"""

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tensorplay.version import __version__

__all__ = ["REQUEST_ID", "VERSION", "NamedRequests", "request_id_of"]

REQUEST_ID = "X-Request-ID"
"""The header that names a request, in both directions."""

VERSION = "X-TensorPlay-Version"
"""The header that names the version that answered."""

_KEY = "tensorplay.request_id"
# Printable, without spaces, and too short to fill a log.
_WELL_FORMED = re.compile(r"[!-~]{1,128}")


class NamedRequests:
    """Names each request before anything else looks at it, and says the name in the answer, whatever that is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on under its name; one that has a name of ours already is left as it is."""
        if scope["type"] != "http" or _KEY in scope:
            await self._app(scope, receive, send)
            return
        name = scope[_KEY] = _name_of(Headers(scope=scope))

        async def named_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = name
                headers[VERSION] = __version__
            await send(message)

        await self._app(scope, receive, named_send)


def request_id_of(scope: Scope) -> str:
    """Return the name of a request; a fresh one for what came past `NamedRequests`."""
    name: str = scope.setdefault(_KEY, secrets.token_hex(16))
    return name


def _name_of(headers: Headers) -> str:
    # Of several, nobody knows which one is meant.
    given = headers.getlist(REQUEST_ID)
    is_name = len(given) == 1 and _WELL_FORMED.fullmatch(given[0]) is not None
    return given[0] if is_name else secrets.token_hex(16)
