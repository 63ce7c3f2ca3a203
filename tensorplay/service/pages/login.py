"""How a browser comes by the right to read or change: a cookie, for the token or for a code that works once."""

import hmac
import secrets
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tensorplay.service.cookies import cookie_of, cookies_named
from tensorplay.service.guard import FORM, media_type
from tensorplay.service.pages.error_page import SIGNED_OUT, sign_in_page, wants_page
from tensorplay.service.pages.next_page import checked_next
from tensorplay.service.pages.rendering import environment
from tensorplay.service.problems import Problem
from tensorplay.service.state import Shared, State

if TYPE_CHECKING:
    from tensorplay.service.sessions import Sessions
    from tensorplay.service.token_check import TokenCheck

__all__ = ["LoginCode", "router"]

_LONGEST_FORM = 8192
_MOST_FIELDS = 8

router = APIRouter()


class LoginCode:
    """A secret that may stand in a printed address, since it works once; the token must not, for it works always."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._code: str | None = None

    def renew(self) -> str:
        """Return a fresh code; the one before does not work any more."""
        with self._lock:
            self._code = secrets.token_urlsafe(24)
            return self._code

    def redeem(self, code: str) -> bool:
        """Return whether it is the code; once."""
        with self._lock:
            if self._code is None or not hmac.compare_digest(self._code.encode(), code.encode()):
                return False
            self._code = None
            return True


def _remember(request: Request, response: Response, state: State) -> None:
    # Browsers send a cookie to every server of a host, whoever's it is: so it holds no token.
    sessions: Sessions = request.app.state.tensorplay_sessions
    # Without a path the cookie belongs to the folder that the browser sees, whatever prefix a proxy takes away.
    response.set_cookie(
        cookie_of(state.instance.id),
        sessions.open(),
        path=None,
        httponly=True,
        samesite="strict",
        secure=request.scope.get("scheme") == "https",
    )


@router.get("/login")
async def redeem_code(request: Request, state: Shared, code: str = "", out: str = "") -> Response:
    """Exchange the code of a printed address for a cookie; without one, ask for the token."""
    if not code and wants_page(request):
        return sign_in_page(request, told=SIGNED_OUT if out else "")
    codes: LoginCode = request.app.state.tensorplay_login
    if not (code and codes.redeem(code)):
        raise Problem(403, "bad-code", "this link has been used, or is not of this process; enter the token instead")
    # A redirect would not carry a strict cookie when the link was opened from elsewhere; a page that goes on does.
    response = HTMLResponse(environment().get_template("login.html").render(root="./"))
    _remember(request, response, state)
    return response


@router.post("/login", status_code=204)
async def keep_token(request: Request, state: Shared) -> Response:
    """Keep the token in a cookie that no script can read: that of a header, or that of a form, which goes on then.

    The guard has found the header right, and looks at no form.
    """
    if media_type(request.headers) == FORM:
        return await _keep_of_form(request, state)
    response = Response(status_code=204)
    if request.headers.get("x-tensorplay-token"):
        _remember(request, response, state)
    return response


async def _keep_of_form(request: Request, state: State) -> Response:
    fields = _fields(await request.body())
    # Where to go on after the token was wrong, too.
    request.state.next = checked_next(fields.get("next", ""))
    tokens: TokenCheck = request.app.state.tensorplay_tokens
    token = fields.get("token", "").strip()
    tokens.check(token or None, request.scope)
    # To a page of ours, by an address that is relative: there is no other way to write one.
    response = RedirectResponse(f"./{request.state.next}", 303)
    _remember(request, response, state)
    return response


def _fields(body: bytes) -> dict[str, str]:
    if len(body) > _LONGEST_FORM:
        raise Problem(413, "too-large", "the form is larger than 8 KiB")
    try:
        found = parse_qs(body.decode("ascii", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Problem(422, "invalid", "this is no form of ours") from None
    return {name: values[0] for name, values in found.items()}


@router.post("/logout", status_code=204)
async def forget_token(request: Request, state: Shared) -> Response:
    """Take the cookie away, and let its value mean nothing any more; a person then goes on to the page that asks."""
    sessions: Sessions = request.app.state.tensorplay_sessions
    for value in cookies_named(request.headers, cookie_of(state.instance.id)):
        sessions.close(value)
    # A form without a field has an empty body, which the guard lets through.
    response = RedirectResponse("./login?out=1", 303) if wants_page(request) else Response(status_code=204)
    response.headers["Set-Cookie"] = f"{cookie_of(state.instance.id)}=; Max-Age=0; HttpOnly; SameSite=strict"
    return response
