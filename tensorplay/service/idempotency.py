"""Idempotency keys: a request that is sent again, since its answer was lost, does nothing twice."""

import time
from dataclasses import dataclass
from threading import Lock
from typing import Any

from tensorplay.service.problems import Problem
from tensorplay.typing import Clock

__all__ = ["KEPT_S", "IdempotencyKeys"]

KEPT_S = 600.0
"""How long an answer is remembered."""

_MOST_KEYS = 1000


@dataclass(slots=True)
class _Known:
    request: object
    until: float
    answer: Any = None


class IdempotencyKeys:
    """What was answered to each key; safe in any number of threads.

    Parameters
    ----------
    clock : callable
        Seconds.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._known: dict[str, _Known] = {}

    def begin(self, key: str | None, request: object) -> Any:
        """Return what was answered before to a key, None when the request is to be done; then `end` must follow.

        Raises
        ------
        Problem
            422 for a key that was used for another request, 409 while the first is still being done.
        """
        if not key:
            return None
        now = self._clock()
        with self._lock:
            for old in [each for each, known in self._done() if known.until <= now]:
                del self._known[old]
            known = self._known.get(key)
            if known is None:
                for old, _ in self._done()[: max(0, len(self._known) - _MOST_KEYS + 1)]:
                    del self._known[old]
                self._known[key] = _Known(request, now + KEPT_S)
                return None
            if known.request != request:
                raise Problem(422, "key-reused", "this Idempotency-Key was used for something else; make a new one")
            if known.answer is None:
                raise Problem(
                    409, "in-flight", "the request with this key is still being done", headers={"Retry-After": "1"}
                )
            return known.answer

    def _done(self) -> list[tuple[str, _Known]]:
        """Return what may be forgotten, oldest first: were it what is being done, it could be done twice."""
        return [(key, known) for key, known in self._known.items() if known.answer is not None]

    def end(self, key: str | None, answer: Any) -> None:
        """Remember the answer; None forgets the key, since the request was refused and may be sent again."""
        if not key:
            return
        with self._lock:
            known = self._known.get(key)
            if answer is None:
                self._known.pop(key, None)
            elif known is not None:
                known.answer = answer
