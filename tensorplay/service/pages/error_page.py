"""Errors for people: what is wrong and where to go on, and nothing of what was asked for."""

from collections.abc import Sequence
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from tensorplay.service.own_path import own_path
from tensorplay.service.pages.links import WITH_FORM, root_of
from tensorplay.service.pages.next_page import next_of
from tensorplay.service.pages.people_words import place_words
from tensorplay.service.pages.rendering import environment
from tensorplay.service.problems import Problem

__all__ = ["SIGNED_OUT", "problem_page", "sign_in_page", "wants_page"]

_SIGN_IN = {
    "token-needed": "This service shows nothing without its token.",
    "too-many-tokens": "Too many wrong tokens: wait a minute, then try again.",
    "bad-code": "This link has been used, or is not of this process. Enter the token instead.",
}
"""Problems that the token helps against, and what a person is told."""

_CHANGE = "Changing something needs the token. Enter it, then press once more."

SIGNED_OUT = "This browser is signed out."
"""What a person is told after signing out."""


def wants_page(request: Request) -> bool:
    """Return whether a person asks: a browser that would show the answer, and not for a part of the API."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and not own_path(request.scope).startswith("/api/")


def problem_page(request: Request, problem: Problem) -> Response | None:
    """Return a problem as a page, with a field for the token where that helps; None when a program asks."""
    if not wants_page(request):
        return None
    if problem.code in _SIGN_IN:
        return sign_in_page(request, problem)
    try:
        title = "This does not fit" if problem.status == 422 else HTTPStatus(problem.status).phrase
    except ValueError:
        title = "Error"
    errors = [place_words(each["loc"], each["msg"]) for each in problem.extra.get("errors", [])]  # type: ignore[attr-defined] # of `problems`
    text = environment().get_template("error.html").render(
        root=root_of(request.scope),
        status=problem.status,
        title=title,
        detail=_detail(request, problem, errors),
        back=_back(request, problem),
        errors=errors,
    )  # fmt: skip
    return HTMLResponse(text, problem.status, headers={**problem.headers, "Cache-Control": "no-store"})


def _detail(request: Request, problem: Problem, errors: Sequence[tuple[str, str]]) -> str:
    """Return what is wrong, where what was asked for does not fit: its words are for programs."""
    if problem.code != "invalid" or not errors:
        return problem.detail
    if own_path(request.scope) == "/do":
        return "What was typed is not taken:"
    return "The address of this page asks for what it does not know:"


def _back(request: Request, problem: Problem) -> str:
    """Return the page to go back to: that of a form, or the page itself without what it does not know."""
    if own_path(request.scope) == "/do":
        return next_of(request)
    is_query = problem.status in {400, 422} and bool(request.scope["query_string"])
    return next_of(request).partition("?")[0] if is_query else ""


def sign_in_page(request: Request, problem: Problem | None = None, *, told: str = "") -> Response:
    """Return the page that asks for the token, and goes on to the page that was asked for; it needs no script."""
    is_refused = problem is not None and problem.code == "token-needed" and request.method == "POST"
    is_wrong = is_refused and own_path(request.scope) == "/login"
    told = told if is_wrong or problem is None else _SIGN_IN[problem.code]
    text = environment().get_template("sign_in.html").render(
        root=root_of(request.scope),
        next=next_of(request),
        detail=_CHANGE if is_refused and not is_wrong else told,
        is_wrong=is_wrong,
    )  # fmt: skip
    headers = {"Cache-Control": "no-store", **WITH_FORM}
    status = 200 if problem is None else problem.status
    return HTMLResponse(text, status, headers={**(problem.headers if problem else {}), **headers})
