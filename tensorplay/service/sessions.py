"""Browsers that are signed in: each has a value of its own, for a cookie goes to every server of a host."""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

__all__ = ["Sessions"]

_MOST = 64


class Sessions:
    """Values that stand for the token in cookies, and nowhere else; kept in memory only, and bounded in number."""

    def __init__(self) -> None:
        self._lock = Lock()
        # Digests are looked up: how long that takes tells nothing of a value.
        self._open: OrderedDict[bytes, None] = OrderedDict()

    def open(self) -> str:
        """Return a new value; the one unused for longest ends where there are too many."""
        value = secrets.token_urlsafe(32)
        with self._lock:
            self._open[_digest(value)] = None
            if len(self._open) > _MOST:
                self._open.popitem(last=False)
        return value

    def is_open(self, value: str | None) -> bool:
        """Return whether a value is one of a browser that is signed in."""
        if value is None:
            return False
        digest = _digest(value)
        with self._lock:
            if digest not in self._open:
                return False
            self._open.move_to_end(digest)
            return True

    def is_any_open(self, values: Iterable[str]) -> bool:
        """Return whether one of some values is."""
        return any(map(self.is_open, values))

    def close(self, value: str | None) -> None:
        """End one; what is none is passed over."""
        if value is not None:
            with self._lock:
                self._open.pop(_digest(value), None)

    def close_all(self) -> None:
        """Sign every browser out."""
        with self._lock:
            self._open.clear()


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "replace")).digest()
