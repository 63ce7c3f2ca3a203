"""Cursors: where a list goes on, opaque to clients, and only those that this process made."""

import base64
import hashlib
import hmac
import json

from tensorplay.service.problems import Problem

__all__ = ["Cursor", "CursorKey"]

Cursor = tuple[str | float | int | bool, str]
"""The sort key of the last row that was given, and its id."""

_MAC_BYTES = 12
_LONGEST = 1024


class CursorKey:
    """Signs cursors, so that nobody else's are taken for a place in a list."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def encode(self, sort: str, cursor: Cursor) -> str:
        """Return the text of a cursor in a list that is sorted so."""
        body = json.dumps([sort, *cursor]).encode()
        return base64.urlsafe_b64encode(self._mac(body) + body).decode().rstrip("=")

    def decode(self, sort: str, text: str) -> Cursor:
        """Return the place that a text stands for; a 400 `Problem` when it is none of such a list."""
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            mac, body = data[:_MAC_BYTES], data[_MAC_BYTES:]
            if len(text) > _LONGEST or not hmac.compare_digest(mac, self._mac(body)):
                raise ValueError(text)  # noqa: TRY301 - one exit
            of, key, identity = json.loads(body)
            if of != sort:
                raise ValueError(of)  # noqa: TRY301 - one exit
        except ValueError:
            raise Problem(
                400,
                "bad-cursor",
                "this cursor is not of this list in this process; begin anew without one, and keep the sorting",
            ) from None
        return key, identity

    def _mac(self, body: bytes) -> bytes:
        return hmac.new(self._secret, body, hashlib.sha256).digest()[:_MAC_BYTES]
