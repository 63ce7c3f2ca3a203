"""The files that pages refer to: a fixed set, read from the package once. No path of a request reaches a disk."""

import hashlib
import mimetypes
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from tensorplay.service.problems import Problem

__all__ = ["StaticFile", "router", "static_files", "static_url"]

_FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter()


class StaticFile(NamedTuple):
    """One file; the version is made of its content."""

    content: bytes
    media_type: str
    version: str


def _walked(folder: Traversable, prefix: str) -> dict[str, StaticFile]:
    found: dict[str, StaticFile] = {}
    for each in folder.iterdir():
        name = f"{prefix}{each.name}"
        if each.is_dir():
            found |= _walked(each, f"{name}/")
        else:
            content = each.read_bytes()
            kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "text/plain"
            found[name] = StaticFile(content, kind, hashlib.sha256(content).hexdigest()[:12])
    return found


@cache
def static_files() -> dict[str, StaticFile]:
    """Return every file by its name below `static/`."""
    return _walked(files("tensorplay.web") / "static", "")


def static_url(name: str) -> str:
    """Return where a file is, relative to the root; another content has another address."""
    return f"static/{name}?v={static_files()[name].version}"


@router.get("/static/{name:path}")
async def read_static(request: Request, name: str, v: str = "") -> Response:
    """Return a file; one that is asked for by its version never changes."""
    found = static_files().get(name)
    if found is None:
        raise Problem(404, "not-found", "there is no such file")
    tag = f'"{found.version}"'
    headers = {"ETag": tag, "Cache-Control": _FOR_EVER if v == found.version else "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)
