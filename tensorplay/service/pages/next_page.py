"""Where a browser goes on once it has shown the token, or changed something: to a page of ours, and nowhere else."""

import re

from starlette.requests import Request

from tensorplay.service.own_path import own_path

__all__ = ["checked_next", "next_of"]

# The pages by name, one of them with an id, and a query; no scheme, no host, no dot, no slash at the beginning.
_NEXT = re.compile(r"(?:[a-z]{2,20}(?:/[0-9a-z/]{1,80})?)?(?:\?[A-Za-z0-9%&=_.~+*-]{0,2000})?", re.ASCII)


def checked_next(given: str) -> str:
    """Return an address that is relative to the root if it may be a page of ours, else that of the overview.

    Where only the query cannot be one of ours, or is too long, it is the page without it.
    """
    page = given.partition("?")[0]
    return next((each for each in (given, page) if _NEXT.fullmatch(each) and "//" not in each), "")


def next_of(request: Request) -> str:
    """Return the address of the page that was asked for, relative to the root; the overview's where it is none.

    Of a form for changes that is the page that it is on.
    """
    known: str | None = getattr(request.state, "next", None)
    if known is not None:
        return known
    path = own_path(request.scope).lstrip("/")
    if path == "do":
        return checked_next(request.query_params.get("on", ""))
    if path == "login" or request.method not in {"GET", "HEAD"}:
        return ""
    query = request.scope["query_string"].decode("ascii", "replace")
    return checked_next(path + (f"?{query}" if query else ""))
