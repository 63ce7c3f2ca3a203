"""Errors for people: what is wrong and where to go on, and nothing of what was asked for."""

from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from tensorplay.service.pages.links import root_of
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


def wants_page(request: Request) -> bool:
    """Return whether a person asks: a browser that would show the answer, and not for a part of the API."""
    accepted = request.headers.get("accept", "")
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    return "text/html" in accepted and not path.startswith("/api/")


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
        errors=[(" ".join(each["loc"][1:]), each["msg"]) for each in problem.extra.get("errors", [])],  # type: ignore[attr-defined] # of `problems`
    )  # fmt: skip
    return HTMLResponse(text, problem.status, headers={**problem.headers, "Cache-Control": "no-store"})


def sign_in_page(request: Request, problem: Problem | None = None) -> Response:
    """Return the page that asks for the token, and goes on to the page that was asked for; it needs no script."""
    is_wrong = problem is not None and problem.code == "token-needed" and request.method == "POST"
    text = environment().get_template("sign_in.html").render(
        root=root_of(request.scope),
        next=next_of(request),
        detail="" if is_wrong or problem is None else _SIGN_IN[problem.code],
        is_wrong=is_wrong,
    )  # fmt: skip
    # Without a referrer a browser sends the form as if it came from nowhere, `Origin: null`, which is refused.
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    status = 200 if problem is None else problem.status
    return HTMLResponse(text, status, headers={**(problem.headers if problem else {}), **headers})
