"""Whether a token is the right one, asked for in one place: in constant time, and not too often."""

import hmac

from starlette.types import Scope

from tensorplay.service.problems import Problem
from tensorplay.service.token_bucket import TokenBucket

__all__ = ["TokenCheck", "address_of"]

_WRONG_PER_MIN = 5.0
_LONG = 32
"""From so many characters on a token is not to be guessed, however often somebody tries."""


class TokenCheck:
    """Compares tokens with the right one, and counts the wrong ones by address.

    Parameters
    ----------
    token : str
        The right one.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        # Who limits guesses lets others shut the owner out, from the same address: only where guesses could succeed.
        self._is_guessable = len(token) < _LONG
        self._wrong = TokenBucket(_WRONG_PER_MIN / 60.0, _WRONG_PER_MIN)

    def check(self, given: str | None, scope: Scope) -> None:
        """Raise a `Problem` unless the token is the right one: 401, or 429 after too many wrong ones.

        After too many wrong ones even the right one is refused for a while, if it is short: it may be a guess.
        """
        if given is not None:
            address = address_of(scope)
            if self._is_guessable and not self._wrong.has(address):
                raise _too_many()
            if hmac.compare_digest(given.encode("utf-8", "replace"), self._token):
                return
            if not self._wrong.take(address):
                raise _too_many()
        wrong = "" if given is None else "the token that was sent is another one; "
        raise Problem(
            401,
            "token-needed",
            f"{wrong}send the token, as `Authorization: Bearer` or X-TensorPlay-Token: `service.token`, or "
            "TENSORPLAY_TOKEN of the process; if it was started without that, start it anew with it, or open the link "
            "in its log, which lets one browser in",
            headers={"WWW-Authenticate": "Bearer"},
        )


def _too_many() -> Problem:
    return Problem(429, "too-many-tokens", "too many wrong tokens", headers={"Retry-After": "60"})


def address_of(scope: Scope) -> str:
    """Return what a client is counted by."""
    client = scope.get("client")
    return client[0] if client else "local"
