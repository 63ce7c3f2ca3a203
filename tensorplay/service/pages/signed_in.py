"""Whether a browser is signed in, by its cookie."""

from typing import TYPE_CHECKING

from fastapi import Request

from tensorplay.service.cookies import cookie_of, cookies_named
from tensorplay.service.state import State

if TYPE_CHECKING:
    from tensorplay.service.sessions import Sessions

__all__ = ["is_signed_in"]


def is_signed_in(request: Request, state: State) -> bool:
    """Return whether the browser of a request may sign out."""
    sessions: Sessions = request.app.state.tensorplay_sessions
    return sessions.is_any_open(cookies_named(request.headers, cookie_of(state.instance.id)))
