"""The names that a query may have: those that its route declares, once each.

Any other is a typo, and of two values one would count; neither is passed over.
"""

from difflib import get_close_matches

from fastapi import Depends, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute

from tensorplay.service.problems import Problem

__all__ = ["DECLARED_QUERY", "declared_names"]

_MOST_NAMED = 10
_LONGEST_NAME = 64


def declared_names(request: Request) -> tuple[str, ...]:
    """Return the names of the query parameters that the route of a request declares, in their order."""
    route = request.scope.get("route")
    fields = get_flat_params(route.dependant) if isinstance(route, APIRoute) else ()
    return tuple(field.alias for field in fields if isinstance(field.field_info, Query))


async def _check_query(request: Request) -> None:
    if not request.query_params:
        return
    allowed = declared_names(request)
    unknown = [name for name in request.query_params if name not in allowed]
    if unknown:
        raise Problem(
            422,
            "unknown-parameter",
            f"{_shown(unknown[0])} is no query parameter here; allowed: {', '.join(allowed) or 'none'}",
            errors=[_place(name, allowed) for name in unknown[:_MOST_NAMED]],
            allowed=list(allowed),
        )
    repeated = [name for name in allowed if len(request.query_params.getlist(name)) > 1]
    if repeated:
        raise Problem(
            422,
            "repeated-parameter",
            f"{repeated[0]} is given more than once; allowed: each query parameter once",
            errors=[
                {"loc": ["query", name], "msg": "given more than once", "type": "repeated_parameter"}
                for name in repeated
            ],
        )


DECLARED_QUERY = [Depends(_check_query)]
"""Of a router whose routes take no query parameter but those that they declare, once each; 422 for any other."""


def _place(name: str, allowed: tuple[str, ...]) -> dict[str, object]:
    near = get_close_matches(name[:_LONGEST_NAME], allowed, 1)
    meant = f"; {near[0]} may be meant" if near else ""
    return {"loc": ["query", _shown(name)], "msg": f"not a query parameter here{meant}", "type": "unknown_parameter"}


def _shown(name: str) -> str:
    """Return a name as text that nothing takes for more than text."""
    return name[:_LONGEST_NAME].encode("ascii", "backslashreplace").decode()
