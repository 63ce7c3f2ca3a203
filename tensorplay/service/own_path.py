"""The path of a request as the application knows it, whatever prefix a mount or a proxy has put before it."""

from starlette.types import Scope

__all__ = ["own_path"]


def own_path(scope: Scope) -> str:
    """Return the path below the root of the application, with a slash at its beginning."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
