"""HEAD, for whatever can be read: the answer to GET without its body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HeadRequests"]

# A link to sign in is good for one look at it, which is a person's.
_ENTRANCE = "/login"


class _Told(Exception):  # noqa: N818 - no error, but the way out of an answer that goes on for ever
    """The head of an answer is sent, and nothing else is wanted."""


class HeadRequests:
    """Pure ASGI. What makes a body is stopped at its first part: an export costs no more than its beginning."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer GET in the place of HEAD, and send the head of that."""
        if not _asks_for_head(scope):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                raise _Told
            await send(message)

        try:
            # A copy, since the server must still know that no body follows.
            await self._app({**scope, "method": "GET"}, receive, send_head)
        except _Told:
            return


def _asks_for_head(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] == "HEAD" and not scope["path"].endswith(_ENTRANCE)
