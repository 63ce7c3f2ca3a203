"""Links without a leading slash, so that a page works under any prefix that a proxy or a mount puts before it."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from starlette.types import Scope

__all__ = ["WITH_FORM", "form_action", "query", "root_of"]

_LONGEST_ON = 1000
WITH_FORM = {"Referrer-Policy": "same-origin"}
"""Of a page with a form: without a referrer a browser sends it with `Origin: null`, which is refused."""


def root_of(scope: Scope) -> str:
    """Return how the page of a request refers to the root of the application: `./`, `../`, and so on.

    What counts are the slashes that the browser sees: an encoded one in a name is none.
    """
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.partition(b"?")[0].decode("ascii", "replace")
    prefix = scope.get("root_path", "")
    if prefix and path.startswith(prefix):
        path = path[len(prefix) :]
    return "../" * (path.count("/") - 1) or "./"


def form_action(root: str, on: str) -> str:
    """Return where the forms of a page go, which say what page they are on; without its query where that is long."""
    shown = on if len(on) <= _LONGEST_ON else on.partition("?")[0]
    return f"{root}do?{urlencode({'on': shown})}"


def query(given: Iterable[tuple[str, str]], changes: Mapping[str, object] | None = None) -> str:
    """Return a query string, with its question mark, where some parameters are replaced; None takes one away."""
    new = dict(changes or {})
    pairs = [(name, value) for name, value in given if name not in new and value != "" and name != "_partial"]
    pairs += [(name, str(value)) for name, value in new.items() if value is not None]
    return "?" + urlencode(pairs)
