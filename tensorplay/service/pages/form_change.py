"""Changes by plain forms, for browsers without a script: what the REST API takes, and nothing besides.

A form names a call of the API. It is sent through the guard and the routes again, so that nobody comes further by a
form than by the API; what is answered there becomes a page for people.
"""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tensorplay.service.guard import FORM, media_type
from tensorplay.service.pages.form_call import Call, read_call
from tensorplay.service.pages.form_fields import fields_of, filled
from tensorplay.service.pages.inner_call import Answer, answer_of
from tensorplay.service.pages.links import WITH_FORM, form_action
from tensorplay.service.pages.next_page import checked_next, next_of
from tensorplay.service.pages.people_words import refusal_words, told_of
from tensorplay.service.pages.rendering import environment
from tensorplay.service.problems import Problem

__all__ = ["router"]

_TOLD_ON = ("retry-after", "www-authenticate", "allow")
_MOST_TOLD = 10
_URN = "urn:tensorplay:problem:"

router = APIRouter()


@router.post("/do")
async def change(request: Request) -> Response:
    """Do what a form says, and go on to a page; ask first where the form wants to be sure."""
    if media_type(request.headers) != FORM:
        raise Problem(415, "not-a-form", f"send a form, as {FORM}; programs use the REST API")
    fields = fields_of(await request.body())
    calls = fields.get("call", ())
    if len(calls) != 1:
        raise Problem(422, "invalid", "a form has one `call`; load the page anew")
    call = read_call(calls[0])
    made = filled(call, fields)
    if call.sure is not None and "yes" not in fields:
        return _question(request, call, calls[0], {name: fields[name][0] for name in call.fields})
    answer = await answer_of(request, call, made)
    if answer.status == 207:
        _check_ranks(answer)
    elif not 200 <= answer.status < 300:
        raise _problem_of(answer)
    go = next_of(request) if call.go is None else checked_next(call.go)
    # There is no other way to write an address that stays below whatever stands before us.
    return RedirectResponse(f"./{_with_counts(go, call, answer)}#{call.at or 'done'}", 303)


def _with_counts(go: str, call: Call, answer: Answer) -> str:
    told = told_of(call.path, _document(answer.content))
    return go if told is None else f"{go}{'&' if '?' in go else '?'}told={told}"


def _question(request: Request, call: Call, text: str, typed: Mapping[str, str]) -> Response:
    on = next_of(request)
    page = environment().get_template("sure.html").render(
        root="./",
        text=call.sure,
        yes=call.yes or "Go on",
        call=text,
        typed=typed,
        back=on,
        do=form_action("./", on),
    )  # fmt: skip
    return HTMLResponse(page, headers={"Cache-Control": "private, no-cache", **WITH_FORM})


def _problem_of(answer: Answer) -> Problem:
    document = _document(answer.content)
    told = {name: answer.headers[name] for name in _TOLD_ON if name in answer.headers}
    code = str(document.get("type", "")).removeprefix(_URN) or "refused"
    detail = refusal_words(code, str(document.get("detail", f"the service answered {answer.status}")))
    errors = document.get("errors", [])
    return Problem(answer.status, code, detail, headers=told, errors=errors)


def _check_ranks(answer: Answer) -> None:
    """Raise a `Problem` where a rank refused what the others did, which says of each why."""
    refused = [each for each in _document(answer.content).get("items", []) if each["status"] >= 400]
    if not refused:
        return
    told = [f"Not on rank {each['local_rank']}: {_detail(each['body'])}." for each in refused[:_MOST_TOLD]]
    more = len(refused) - len(told)
    if more:
        told.append(f"Nor on {more} more.")
    raise Problem(refused[0]["status"], "rank-refused", " ".join([*told, "All others have done it."]))


def _detail(body: object) -> object:
    # It is another process's, and perhaps of another version.
    return body.get("detail", "refused") if isinstance(body, dict) else "refused"


def _document(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
