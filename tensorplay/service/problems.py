"""Errors as RFC 9457 problem documents. They say what is wrong, and never repeat a value that was sent."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Scope

from tensorplay.errors import SignatureError
from tensorplay.runtime.notice import logger
from tensorplay.service.file_names import FILE_PATTERN, FILE_WORDS, RESULTS_PATTERN, RESULTS_WORDS
from tensorplay.service.identity import ID_PATTERN
from tensorplay.service.request_id import request_id_of

__all__ = ["PROBLEM_TYPE", "Problem", "add_handlers", "document_of", "failure", "no_signature", "problem_response"]

PROBLEM_TYPE = "application/problem+json"

_WORDS = {
    FILE_PATTERN: FILE_WORDS,
    RESULTS_PATTERN: RESULTS_WORDS,
    ID_PATTERN: "16 of 0 to 9 and a to f, as lists have them",
}
"""What patterns allow, for people, who are shown none."""

_MOST_PLACES = 100
_LONGEST_NAME = 64
_TITLES = {
    400: "Bad request",
    401: "A token is needed",
    403: "Refused",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "In conflict with the present state",
    410: "Gone",
    412: "Changed meanwhile",
    413: "Too large",
    415: "Unsupported media type",
    422: "Not valid",
    428: "If-Match is needed",
    429: "Too many requests",
    500: "Internal error",
    502: "Another process did not answer",
    503: "Not available now",
    504: "Another process took too long",
    507: "No space",
}


class Problem(Exception):  # noqa: N818 - the word of the standard
    """An answer that is an error.

    Parameters
    ----------
    status : int
        Of HTTP.
    code : str
        Names the problem for programs: `urn:tensorplay:problem:<code>`.
    detail : str
        What is wrong, what is allowed, what to do.
    headers : mapping, optional
        Further headers.
    extra : keyword arguments
        Further members of the document.
    """

    def __init__(
        self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **extra: object
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.extra = extra


def no_signature(what: str, error: SignatureError) -> Problem:
    """Return the answer to a signature that is none: what is allowed, and nothing of what was sent."""
    allowed = str(error).partition("; allowed: ")[2]
    told = f"; allowed: {allowed}" if allowed else "; see the page on the file format"
    return Problem(422, "bad-signature", f"{what} no signature{told}")


def problem_response(problem: Problem, scope: Scope) -> JSONResponse:
    """Return the answer to the request of a scope."""
    return JSONResponse(document_of(problem, scope), problem.status, headers=problem.headers, media_type=PROBLEM_TYPE)


def document_of(problem: Problem, scope: Scope) -> dict[str, object]:
    """Return the document that tells a problem of the request of a scope."""
    return {
        "type": f"urn:tensorplay:problem:{problem.code}",
        "title": _TITLES.get(problem.status, "Error"),
        "status": problem.status,
        "detail": problem.detail,
        "request_id": request_id_of(scope),
        **problem.extra,
    }


def add_handlers(app: FastAPI, as_page: Callable[[Request, Problem], Response | None] | None = None) -> None:
    """Let every error of an application be a problem document, or what `as_page` makes of it, if anything."""

    def answer(request: Request, problem: Problem) -> Response:
        page = as_page(request, problem) if as_page else None
        return problem_response(problem, request.scope) if page is None else page

    @app.exception_handler(Problem)
    async def on_problem(request: Request, problem: Problem) -> Response:
        return answer(request, problem)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(
            request,
            Problem(422, "invalid", "the request does not fit; `errors` says where", errors=_places(error.errors())),
        )

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        codes = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}
        details = {404: "there is nothing under this address", 413: "the body is larger than 1 MiB"}
        detail = details.get(error.status_code, _TITLES.get(error.status_code, "Error").lower())
        code = codes.get(error.status_code, "http")
        return answer(request, Problem(error.status_code, code, detail, headers=error.headers))


def failure(scope: Scope, error: Exception) -> Problem:
    """Log what should not have happened, and return what the client is told of it: nothing but that."""
    name = request_id_of(scope)
    logger.error("the service failed on %s %r, request %s", scope["method"], scope["path"], name, exc_info=error)
    return Problem(500, "internal", "the service failed; the log of the process says why")


def _places(errors: Sequence[Any]) -> list[dict[str, object]]:
    """Return where and why, without the values that were sent: of a hundred at most, with names cut short."""
    return [
        {"loc": [_shown(part) for part in each["loc"]], "msg": _why(each), "type": each["type"]}
        for each in errors[:_MOST_PLACES]
    ]


def _why(error: Any) -> str:
    words = _WORDS.get(error["ctx"].get("pattern", "")) if error["type"] == "string_pattern_mismatch" else None
    return str(error["msg"]) if words is None else f"allowed: {words}"


def _shown(part: object) -> str:
    """Return a part of where, which may be a name that a client made up, as text that nothing takes for more."""
    return str(part)[:_LONGEST_NAME].encode("ascii", "backslashreplace").decode()
