"""Whether a browser is signed in, by its cookie."""

from typing import TYPE_CHECKING

from fastapi import Request

from tensorplay.service.cookies import cookies_named
from tensorplay.service.state import State

if TYPE_CHECKING:
    from tensorplay.service.sessions import Sessions

__all__ = ["cookie_of", "is_signed_in"]


def cookie_of(state: State) -> str:
    """Return the name of the cookie of a process."""
    return f"tensorplay_{state.instance.id[:8]}"


def is_signed_in(request: Request, state: State) -> bool:
    """Return whether the browser of a request may sign out."""
    sessions: Sessions = request.app.state.tensorplay_sessions
    return any(sessions.is_open(value) for value in cookies_named(request.headers, cookie_of(state)))
