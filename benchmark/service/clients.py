"""A process of clients of the event stream: they read whatever comes, and nothing else."""

import selectors
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

from service.told import obey

__all__ = ["Clients"]

_REQUEST = "GET {}api/v1/events HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n"


class Clients:
    """Some open streams, read on a thread."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._bytes = 0
        self._events = 0
        self._ended = 0
        self._has_any = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def open(self, url: str, count: int) -> int:
        """Open streams, and return how many said hello."""
        parts = urlsplit(url)
        hello = 0
        for _ in range(count):
            each = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20)
            each.sendall(_REQUEST.format(parts.path, parts.netloc).encode())
            head = b""
            while b"event: hello" not in head and (part := each.recv(65536)):
                head += part
            hello += head.startswith(b"HTTP/1.1 200")
            each.settimeout(0)
            with self._lock:
                self._sockets.append(each)
                self._selector.register(each, selectors.EVENT_READ)
        self._has_any.set()
        return hello

    def drop(self) -> None:
        """Hang up without a word."""
        with self._lock:
            self._has_any.clear()
            for each in self._sockets:
                if each.fileno() >= 0:
                    self._selector.unregister(each)
                    each.close()
            self._sockets.clear()

    def heard(self) -> dict[str, int]:
        """Return how many bytes and events came, and how many streams the other side has ended."""
        return {"bytes": self._bytes, "events": self._events, "ended": self._ended}

    def _read(self) -> None:
        while True:
            self._has_any.wait()
            for key, _ in self._selector.select(timeout=0.2):
                with self._lock:
                    self._take(key.fileobj)

    def _take(self, each: Any) -> None:
        if each.fileno() < 0:
            return
        try:
            part = each.recv(262144)
        except BlockingIOError:
            return
        except ConnectionResetError:
            part = b""
        if not part:
            self._ended += 1
            self._selector.unregister(each)
            each.close()
            return
        self._bytes += len(part)
        self._events += part.count(b"\nevent: ")


if __name__ == "__main__":
    clients = Clients()
    obey({"open": clients.open, "drop": clients.drop, "heard": clients.heard})
