"""The address of the service as a browser has reached it, where that is known for sure.

A proxy may have changed the host, the scheme or the path on the way, and a wrong address is worse than none. So it is
told only where nothing says that there is a proxy, and the request names the very port that it came in on.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

__all__ = ["own_url"]

_PORTS = {"http": 80, "https": 443}
# What proxies add, by the first part of its name.
_OF_PROXIES = ("forwarded", "via", "x-forwarded-", "x-real-ip", "x-original-", "x-scheme", "x-envoy-", "cf-")


def own_url(scope: Scope) -> str | None:
    """Return the address of the root of the application with a slash at its end; None where it may be another."""
    headers, scheme, server = Headers(scope=scope), scope.get("scheme", ""), scope.get("server")
    if scheme not in _PORTS or not server or any(name.startswith(_OF_PROXIES) for name in headers):
        return None
    host = headers.get("host", "")
    try:
        port = urlsplit(f"//{host}").port or _PORTS[scheme]
    except ValueError:
        return None
    if not host or port != server[1]:
        return None
    root = _root(scope)
    return None if root is None else f"{scheme}://{host}{root}"


def _root(scope: Scope) -> str | None:
    """Return the path of the application, with slashes around it; None where the request was not made to that path."""
    prefix = scope.get("root_path", "").rstrip("/")
    asked = scope.get("raw_path") or scope["path"].encode()
    path = asked.partition(b"?")[0].decode("ascii", "replace")
    if not prefix:
        return "/"
    # What a server was told of a proxy's prefix may stand in front of the path, or not.
    return f"{prefix}/" if prefix.isascii() and path.startswith(f"{prefix}/") else None
