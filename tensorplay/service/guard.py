"""The guard: who may ask, from where, how much, and what a browser may do with the answer.

Loopback is no boundary: any page that a browser shows can send requests to 127.0.0.1. So the Host must be ours (else
a name was rebound to us), a page of another origin is refused, and whatever changes something needs the token.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tensorplay.service.body_values import check_values
from tensorplay.service.cookies import cookies_named
from tensorplay.service.own_path import own_path
from tensorplay.service.own_user import is_own_user
from tensorplay.service.problems import Problem, failure, problem_response
from tensorplay.service.sessions import Sessions
from tensorplay.service.token_bucket import TokenBucket
from tensorplay.service.token_check import TokenCheck, address_of

__all__ = ["COUNTED", "FORM", "Guard", "GuardRules", "media_type"]

FORM = "application/x-www-form-urlencoded"
"""What a browser sends that has no script."""

COUNTED = "tensorplay.counted"
"""In the scope, which no client writes: that the change was counted already, as that of the form that asks for it."""

# No user part, no path, nothing that two readers could read differently.
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?", re.ASCII)
_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN = ("/livez", "/readyz")
# Where a form without a script goes.
_FORMS = frozenset({"/login", "/do"})
# Who signs in or out changes nothing that others see.
_SESSIONS = frozenset({"/login", "/logout"})
_ORIGINS = ("origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
_LONGEST_URL = 4096
_LONGEST_HEADERS = 16384
_WRITES_PER_S = 10.0
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """What the guard asks for; see `ServiceSettings`.

    `check_writable` raises the problem that nothing can be changed, where that is so; `as_page` makes an answer for
    people of a problem, None where a program asks.
    """

    tokens: TokenCheck
    sessions: Sessions
    hosts: frozenset[str]
    check_writable: Callable[[], None]
    token_for_reads: bool
    most_body_bytes: int
    cookie: str
    as_page: Callable[[Request, Problem], Response | None]


class Guard:
    """Pure ASGI, so that streams and background work pass through unharmed."""

    def __init__(self, app: ASGIApp, rules: GuardRules) -> None:
        self._app = app
        self._rules = rules
        self._writes = TokenBucket(_WRITES_PER_S, 2 * _WRITES_PER_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with a problem."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There are no web sockets here.
            await send({"type": "websocket.close", "code": 1008})
            return

        is_begun = False

        async def guarded_send(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                _add_headers(MutableHeaders(scope=message))
            await send(message)

        try:
            self._check(scope)
            if scope["method"] not in _SAFE:
                receive = await _whole_body(receive, self._rules.most_body_bytes)
            await self._app(scope, receive, guarded_send)
        except Problem as problem:
            answer = problem
        except Exception as error:
            # Half an answer must not look like a whole one: the server ends the connection, and logs why.
            if is_begun:
                raise
            answer = failure(scope, error)
        else:
            return
        page = self._rules.as_page(Request(scope), answer)
        await (problem_response(answer, scope) if page is None else page)(scope, receive, guarded_send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        path = own_path(scope)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _LONGEST_URL:
            raise Problem(414, "too-long", "the address is longer than 4 KiB")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _LONGEST_HEADERS:
            raise Problem(431, "too-large", "the headers are larger than 16 KiB")
        if path in _OPEN and scope["method"] in _SAFE:
            return
        self._check_host(headers, scope)
        self._check_origin(headers, scope)
        is_change = scope["method"] not in _SAFE
        # No token helps, so none is asked for; who may not even read is told nothing before.
        if is_change and path not in _SESSIONS and not self._rules.token_for_reads:
            self._rules.check_writable()
        # How a browser comes by the cookie, and what the page that asks for the token is made of.
        is_entrance = path == "/login" or path.startswith("/static/")
        needs_token = is_change or (self._rules.token_for_reads and not (is_entrance and scope["method"] in _SAFE))
        is_form = path in _FORMS and scope["method"] == "POST" and media_type(headers) == FORM
        # This form has the token in its body, which its route gives to the same check.
        if needs_token and not (is_form and path == "/login") and not is_own_user(scope):
            given = _token(headers)
            if given is not None or not self._is_signed_in(headers):
                self._rules.tokens.check(given, scope)
            elif is_form and not ("origin" in headers or headers.get("sec-fetch-site") == "same-origin"):
                # Another server of this host is of the same site, so that its pages send the cookie, too; and unlike
                # JSON a form is sent without asking first.
                raise Problem(403, "cross-site", "the browser must say which page the form is on, by Origin")
        if is_change:
            self._check_change(headers, scope, FORM if is_form else None)

    def _is_signed_in(self, headers: Headers) -> bool:
        return self._rules.sessions.is_any_open(cookies_named(headers, self._rules.cookie))

    def _check_host(self, headers: Headers, scope: Scope) -> None:
        given = headers.getlist("host")
        name = _host_name(given[0]) if len(given) == 1 else None
        hosts = self._rules.hosts
        is_ours = name is not None and (name in hosts or name == "localhost" or _is_loopback(name))
        # Whoever listens on all addresses of this machine is known by the one that was asked: no name leads there.
        if not (is_ours or (name is not None and hosts & _WILDCARDS and _is_address(name, scope.get("server")))):
            raise Problem(
                403,
                "unknown-host",
                "this service is not known under that name; if the name is yours, allow it: in TENSORPLAY_HOSTS, by "
                "`hosts` of start(), or by --name of tensorplay serve",
            )

    @staticmethod
    def _check_origin(headers: Headers, scope: Scope) -> None:
        # Of two, another reader may believe the other one; a browser sends each once.
        if any(len(headers.getlist(name)) > 1 for name in _ORIGINS):
            raise Problem(403, "cross-site", "another page must not use this service")
        site = headers.get("sec-fetch-site")
        if site is not None:
            is_navigation = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
            if site == "same-origin" or (is_navigation and headers.get("sec-fetch-dest") == "document"):
                return
            if site != "none":
                raise Problem(403, "cross-site", "another page must not use this service")
        # A person's own doing, as a reload, may send the form of another page once more, which the origin says.
        origin = headers.get("origin")
        if origin is None:
            return
        try:
            netloc = urlsplit(origin).netloc
        except ValueError:
            netloc = ""
        if not netloc or netloc.lower() != headers.get("host", "").lower():
            raise Problem(403, "cross-site", "another page must not use this service")

    def _check_change(self, headers: Headers, scope: Scope, also: str | None) -> None:
        if scope.get(COUNTED) is not True and not self._writes.take(address_of(scope)):
            raise Problem(429, "too-many-writes", "more than ten changes a second", headers={"Retry-After": "1"})
        length = headers.get("content-length", "0")
        is_number = length.isascii() and length.isdigit() and len(length) < 20
        if not is_number or int(length) > self._rules.most_body_bytes:
            raise Problem(413, "too-large", "the body is larger than 1 MiB")
        has_body = length != "0" or "transfer-encoding" in headers
        if has_body and media_type(headers) not in {"application/json", "application/merge-patch+json", also}:
            raise Problem(415, "not-json", "bodies are application/json")


async def _whole_body(receive: Receive, most: int) -> Receive:
    """Read a body up to a length, whatever its headers said, and return what gives it once more.

    Raises
    ------
    Problem
        413 for one that is longer or of too many values, 400 for one whose client went away before its end: half of it
        is none.
    """
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            # Mostly nobody reads this any more; but what stands between may, and a server wants an answer.
            raise Problem(400, "cut-off", "the body ended before it was whole; send it again")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise Problem(413, "too-large", "the body is larger than 1 MiB")
    check_values(body)
    whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def again() -> Message:
        return whole.pop() if whole else await receive()

    return again


def _token(headers: Headers) -> str | None:
    own = headers.get("x-tensorplay-token")
    if own is not None:
        return own
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    return None


def media_type(headers: Headers) -> str:
    """Return what a body is said to be, without parameters; empty where nothing is said."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _host_name(host: str) -> str | None:
    """Return the name of a Host header without its port, None when it is none."""
    if _HOST.fullmatch(host) is None:
        return None
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return None
    return name.removesuffix(".") if name else None


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_address(name: str, server: tuple[str, int | None] | None) -> bool:
    """Return whether a name is the very address that a connection came in on."""
    try:
        return server is not None and ipaddress.ip_address(name) == ipaddress.ip_address(server[0].partition("%")[0])
    except ValueError:
        return False


def _add_headers(headers: MutableHeaders) -> None:
    headers.setdefault("Content-Security-Policy", _CSP)
    headers["X-Content-Type-Options"] = "nosniff"
    headers.setdefault("Referrer-Policy", "no-referrer")
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers.setdefault("Cache-Control", "no-store")
