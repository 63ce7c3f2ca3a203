"""Errors for people: what is wrong and where to go on, and nothing of what was asked for."""

from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from tensorplay.service.pages.links import WITH_FORM, root_of
from tensorplay.service.pages.next_page import next_of
from tensorplay.service.pages.rendering import environment
from tensorplay.service.problems import Problem

__all__ = ["problem_page", "sign_in_page", "wants_page"]

_SIGN_IN = {
    "token-needed": "This service shows nothing without its token: TENSORPLAY_TOKEN or service.token of its process.",
    "too-many-tokens": "Too many wrong tokens: wait a minute, then try again.",
    "bad-code": "This link has been used, or is not of this process. Enter the token instead.",
}
"""Problems that the token helps against, and what a person is told."""

_CHANGE = "Changing something needs the token: TENSORPLAY_TOKEN or service.token of its process. Then send it again."


def wants_page(request: Request) -> bool:
    """Return whether a person asks: a browser that would show the answer, and not for a part of the API."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and not _path(request).startswith("/api/")


def _path(request: Request) -> str:
    path: str = request.scope["path"]
    return path.removeprefix(request.scope.get("root_path", ""))


def problem_page(request: Request, problem: Problem) -> Response | None:
    """Return a problem as a page, with a field for the token where that helps; None when a program asks."""
    if not wants_page(request):
        return None
    if problem.code in _SIGN_IN:
        return sign_in_page(request, problem)
    try:
        title = HTTPStatus(problem.status).phrase
    except ValueError:
        title = "Error"
    text = environment().get_template("error.html").render(
        root=root_of(request.scope),
        status=problem.status,
        title=title,
        detail=problem.detail,
        back=next_of(request) if _path(request) == "/do" else "",
        errors=[(" ".join(each["loc"][1:]), each["msg"]) for each in problem.extra.get("errors", [])],  # type: ignore[attr-defined] # of `problems`
    )  # fmt: skip
    return HTMLResponse(text, problem.status, headers={**problem.headers, "Cache-Control": "no-store"})


def sign_in_page(request: Request, problem: Problem | None = None) -> Response:
    """Return the page that asks for the token, and goes on to the page that was asked for; it needs no script."""
    is_refused = problem is not None and problem.code == "token-needed" and request.method == "POST"
    is_wrong = is_refused and _path(request) == "/login"
    told = "" if is_wrong or problem is None else _SIGN_IN[problem.code]
    text = environment().get_template("sign_in.html").render(
        root=root_of(request.scope),
        next=next_of(request),
        detail=_CHANGE if is_refused and not is_wrong else told,
        is_wrong=is_wrong,
    )  # fmt: skip
    headers = {"Cache-Control": "no-store", **WITH_FORM}
    status = 200 if problem is None else problem.status
    return HTMLResponse(text, status, headers={**(problem.headers if problem else {}), **headers})
