"""A call of the REST API for a form: through the whole application again, by whoever sent the form, and no more."""

from typing import NamedTuple
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message

from tensorplay.service.guard import COUNTED
from tensorplay.service.own_user import OwnUserDoor, is_own_user
from tensorplay.service.pages.form_call import Call
from tensorplay.service.pages.form_fields import Filled
from tensorplay.service.request_id import REQUEST_ID, request_id_of

__all__ = ["Answer", "answer_of"]

_KEPT = ("type", "asgi", "http_version", "scheme", "root_path", "client", "server")
# Who asks, and from where: what the guard looks at.
_SENT_ON = frozenset({
    b"host", b"cookie", b"authorization", b"x-tensorplay-token",
    b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest",
})  # fmt: skip


class Answer(NamedTuple):
    """What the API answered."""

    status: int
    headers: Headers
    content: bytes


async def answer_of(request: Request, call: Call, made: Filled) -> Answer:
    """Return what the API answers to the call of a form, as if whoever sent the form had sent that."""
    outer = request.scope
    path, _, query = made.path.partition("?")
    # Whatever stands before it, of a mount or a proxy, stands before the API too.
    path = f"{outer['path'].removesuffix('/do')}/api/v1/{path}"
    scope = {name: outer[name] for name in _KEPT if name in outer} | {
        "method": call.method,
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": query.encode(),
        "headers": _headers(request, call, made.body),
        COUNTED: True,
    }
    given: list[Message] = [{"type": "http.request", "body": made.body or b"", "more_body": False}]
    start: Message = {"status": 500, "headers": []}
    content = bytearray()

    async def receive() -> Message:
        # Then only that the client goes away.
        return given.pop() if given else await request.receive()

    async def send(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
        elif message["type"] == "http.response.body":
            content.extend(message.get("body", b""))

    app: ASGIApp = OwnUserDoor(request.app) if is_own_user(outer) else request.app
    await app(scope, receive, send)
    return Answer(start["status"], Headers(raw=start["headers"]), bytes(content))


def _headers(request: Request, call: Call, body: bytes | None) -> list[tuple[bytes, bytes]]:
    headers = [pair for pair in request.scope["headers"] if pair[0].lower() in _SENT_ON]
    own = {"accept": "application/json", REQUEST_ID.lower(): request_id_of(request.scope)}
    if body is not None:
        own |= {"content-type": "application/json", "content-length": str(len(body))}
    if call.match is not None:
        own["if-match"] = call.match
    if call.new:
        own["if-none-match"] = "*"
    return headers + [(name.encode(), value.encode("latin-1")) for name, value in own.items()]
