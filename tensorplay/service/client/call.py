"""One call of the REST API as a value: what is sent, how the answer is read, and whether it may be sent twice."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from tensorplay.service.client.error import ServiceError

__all__ = [
    "SILENCE_S",
    "Call",
    "RetryRule",
    "answer_of",
    "authorization_of",
    "connection_of",
    "error_of",
    "reader_of",
    "unreachable",
]

T = TypeVar("T")

SILENCE_S = 45.0
"""How long a stream may say nothing: the service says so itself every 15 seconds."""

_LONGEST_WAIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One call.

    Attributes
    ----------
    method, path : str
        The path is relative to the service.
    read : callable
        Makes the result from an answer that is no error.
    is_repeatable : bool
        Whether sending it again, when no answer came, does no more than once.
    wait_s : float
        How long the service may take on purpose, besides the client's timeout.
    """

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    wait_s: float = 0.0

    def options(self, timeout: float) -> dict[str, Any]:
        """Return what an httpx client is given besides method and path."""
        options: dict[str, Any] = {
            "params": dict(self.query),
            "headers": dict(self.headers),
            "timeout": timeout + self.wait_s,
        }
        if self.body is not None:
            options["json"] = self.body
        return options


@dataclass(frozen=True, slots=True)
class RetryRule:
    """When a call that failed is sent again: at most so many times, and only what may be."""

    most: int

    def pause(self, call: Call[Any], attempt: int, response: httpx.Response | None) -> float | None:
        """Return the seconds to wait before the next attempt, None when there is none; no response is no answer."""
        if attempt >= self.most:
            return None
        if response is None:
            return 0.1 * 2**attempt if call.is_repeatable else None
        if response.status_code not in {429, 503}:
            return None
        # Refused before anything was done, so that everything may be sent again.
        given = response.headers.get("Retry-After", "1")
        seconds = float(given) if given.isascii() and given.isdigit() and len(given) < 6 else 1.0
        return seconds if seconds <= _LONGEST_WAIT_S else None


def connection_of(
    url: str, token: str | None, timeout: float, transport: object, make_transport: Callable[..., object]
) -> dict[str, Any]:
    """Return what an httpx client of a service is made with.

    `ValueError` when the url is no address of one, or no request can carry the token.
    """
    path = url.removeprefix("unix:") if url.startswith("unix:/") else None
    if transport is None and path is not None:
        transport = make_transport(uds=path)
    return {
        "base_url": _checked_base(url) if path is None else "http://localhost/",
        "transport": transport,
        "headers": authorization_of(token),
        "timeout": timeout,
        # No environment: a proxy would be asked for 127.0.0.1, and see the token.
        "trust_env": False,
        "follow_redirects": False,
    }


def _checked_base(url: str) -> str:
    """Return the address of a service with one slash at its end; `ValueError` when it is none."""
    if not _is_address(url):
        raise ValueError(
            f"{_place_of(url)!r} is no address of a service; allowed: http://HOST:PORT/ or https://..., as printed"
        )
    return url.rstrip("/") + "/"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        # InvalidURL is neither a ValueError nor one of httpx's other errors.
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not (parts.query or parts.fragment)


def authorization_of(token: str | None) -> dict[str, str]:
    """Return the header that shows a token, nothing for none; the end of its line is none of it, as in the service.

    `ValueError` when no header carries it as it is. That never repeats the token.
    """
    shown = (token or "").removesuffix("\n").removesuffix("\r")
    if not (shown.isascii() and shown.isprintable()) or shown != shown.strip():
        raise ValueError(
            "the token has characters that no header carries as they are; allowed: letters, digits, punctuation and "
            "blanks of ASCII, no blank at either end"
        )
    return {"Authorization": f"Bearer {shown}"} if shown else {}


def answer_of(call: Call[T], response: httpx.Response) -> T:
    """Return what an answer says; `ServiceError` when it is an error, or not what was to be expected."""
    if not response.is_success:
        raise error_of(response)
    try:
        return call.read(response)
    except (ValidationError, ValueError) as error:
        raise ServiceError(
            response.status_code, "bad-answer", f"the answer to {call.path} is not that of a TensorPlay service"
        ) from error


def error_of(response: httpx.Response) -> ServiceError:
    """Return the error that an answer stands for; proxies answer with no problem document."""
    try:
        document = response.json()
        code, detail = document["type"].rpartition(":")[2], str(document["detail"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ServiceError(response.status_code, "http", response.reason_phrase or "the request was refused")
    return ServiceError(response.status_code, code, detail, document)


def _place_of(url: str) -> str:
    """Return the address of a service as errors name it: without the name and password that it may hold."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def unreachable(url: str, call_path: str, error: httpx.HTTPError) -> ServiceError:
    """Return the error for a request to the service at a url that was not answered."""
    place = _place_of(url)
    if isinstance(error, httpx.TimeoutException):
        told = f"the service at {place} did not answer {call_path} in time; give a longer `timeout`"
        return ServiceError(0, "timeout", told)
    told = f"the service cannot be reached at {place}: {str(error) or type(error).__name__}"
    return ServiceError(0, "unreachable", told)


def reader_of(kind: Any, *keys: str) -> Callable[[httpx.Response], Any]:
    """Return what reads a value of a type from an answer, or from what is under a key in it."""
    adapter = TypeAdapter(kind)

    def read(response: httpx.Response) -> Any:
        document = json.loads(response.content)
        for key in keys:
            if not isinstance(document, dict) or key not in document:
                raise ValueError(f"no {key}")
            document = document[key]
        return adapter.validate_python(document)

    return read
