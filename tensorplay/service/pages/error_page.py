"""Errors for people: what is wrong and where to go on, and nothing of what was asked for."""

from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from tensorplay.service.pages.links import root_of
from tensorplay.service.pages.rendering import environment
from tensorplay.service.problems import Problem

__all__ = ["problem_page", "wants_page"]


def wants_page(request: Request) -> bool:
    """Return whether a person asks: a browser that would show the answer, and not for a part of the API."""
    accepted = request.headers.get("accept", "")
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    return "text/html" in accepted and not path.startswith("/api/")


def problem_page(request: Request, problem: Problem) -> Response | None:
    """Return a problem as a page; None when a program asks, which gets a document."""
    if not wants_page(request):
        return None
    try:
        title = HTTPStatus(problem.status).phrase
    except ValueError:
        title = "Error"
    text = environment().get_template("error.html").render(
        root=root_of(request.scope),
        status=problem.status,
        title=title,
        detail=problem.detail,
        errors=[(" ".join(each["loc"][1:]), each["msg"]) for each in problem.extra.get("errors", [])],  # type: ignore[attr-defined] # of `problems`
    )  # fmt: skip
    return HTMLResponse(text, problem.status, headers={**problem.headers, "Cache-Control": "no-store"})
