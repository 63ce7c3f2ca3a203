"""How often one address may do something."""

import time
from collections import OrderedDict
from threading import Lock

__all__ = ["TokenBucket"]

_MOST_ADDRESSES = 1024


class TokenBucket:
    """Limits how often an address may do something."""

    def __init__(self, rate: float, most: float) -> None:
        self._rate = rate
        self._most = most
        self._lock = Lock()
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def has(self, address: str) -> bool:
        """Return whether one more would be allowed now."""
        now = time.monotonic()
        with self._lock:
            level, then = self._levels.get(address, (self._most, now))
        return level + (now - then) * self._rate >= 1.0

    def take(self, address: str) -> bool:
        """Return whether one more is allowed now, and count it."""
        now = time.monotonic()
        with self._lock:
            level, then = self._levels.pop(address, (self._most, now))
            level = min(self._most, level + (now - then) * self._rate)
            self._levels[address] = (level - 1.0 if level >= 1.0 else level, now)
            if len(self._levels) > _MOST_ADDRESSES:
                self._levels.popitem(last=False)
            return level >= 1.0
