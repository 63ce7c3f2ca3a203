"""How a browser comes by the right to change things: a cookie, for the token or for a code that works once."""

import hmac
import secrets
from threading import Lock

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from tensorplay.service.pages.rendering import environment
from tensorplay.service.problems import Problem
from tensorplay.service.state import Shared, State

__all__ = ["LoginCode", "router"]

router = APIRouter()


class LoginCode:
    """A secret that may stand in a printed address, since it works once; the token must not, for it works always.

    Parameters
    ----------
    token : str
        What it is exchanged for.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._lock = Lock()
        self._code: str | None = None

    def renew(self) -> str:
        """Return a fresh code; the one before does not work any more."""
        with self._lock:
            self._code = secrets.token_urlsafe(24)
            return self._code

    def redeem(self, code: str) -> str | None:
        """Return the token for the code, once; None for anything else."""
        with self._lock:
            if self._code is None or not hmac.compare_digest(self._code.encode(), code.encode()):
                return None
            self._code = None
            return self._token


def _remember(request: Request, response: Response, state: State, token: str) -> None:
    # Without a path the cookie belongs to the folder that the browser sees, whatever prefix a proxy takes away.
    response.set_cookie(
        f"tensorplay_{state.instance.id[:8]}",
        token,
        path=None,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


@router.get("/login")
async def redeem_code(request: Request, state: Shared, code: str = "") -> Response:
    """Exchange the code of a printed address for a cookie."""
    codes: LoginCode = request.app.state.tensorplay_login
    token = codes.redeem(code) if code else None
    if token is None:
        raise Problem(403, "bad-code", "this link has been used, or is not of this process; enter the token instead")
    # A redirect would not carry a strict cookie when the link was opened from elsewhere; a page that goes on does.
    response = HTMLResponse(environment().get_template("login.html").render(root="./"))
    _remember(request, response, state, token)
    return response


@router.post("/login", status_code=204)
async def keep_token(request: Request, state: Shared) -> Response:
    """Keep the token, which the guard has found right, in a cookie that no script can read."""
    token = request.headers.get("x-tensorplay-token")
    response = Response(status_code=204)
    if token:
        _remember(request, response, state, token)
    return response


@router.post("/logout", status_code=204)
async def forget_token(state: Shared) -> Response:
    """Take the cookie away."""
    response = Response(status_code=204)
    response.headers["Set-Cookie"] = f"tensorplay_{state.instance.id[:8]}=; Max-Age=0; HttpOnly; SameSite=strict"
    return response
