"""Cookies as they are sent: read without unquoting, for which Python takes a second where 16 KiB are hostile.

Nor does anything of ours need it. Every server of a host sets cookies for all of them, so that any may be hostile.
"""

from starlette.datastructures import Headers

__all__ = ["cookie_of", "cookies_named"]

_MOST = 16


def cookie_of(instance_id: str) -> str:
    """Return the name of the cookie of a process, by the id of that."""
    return f"tensorplay_{instance_id[:8]}"


def cookies_named(headers: Headers, name: str) -> list[str]:
    """Return the values of a name, in the order that they were sent; sixteen at most.

    There may be several: another server of the host can set one of the same name for a longer path, which comes first.
    """
    pairs = (pair.partition("=") for header in headers.getlist("cookie") for pair in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name][:_MOST]
