"""What a button of a page calls, as one line of JSON: a script reads it, and a form sends it where there is none."""

import json
from typing import Annotated, Any, Literal, Self

from markupsafe import Markup
from pydantic import Field, ValidationError, model_validator

from tensorplay.service.body_values import check_values
from tensorplay.service.given import Given
from tensorplay.service.problems import Problem

__all__ = ["Call", "call_text", "read_call"]

_LONGEST = 8192
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;"})
_encoded = json.JSONEncoder(separators=(",", ":")).encode
# No segment begins with a dot, so that none leads up; nothing is escaped, so that nothing is read twice.
_PATH = (
    r"^(?:[A-Za-z0-9_][A-Za-z0-9._-]*|\{name\})(?:/(?:[A-Za-z0-9_][A-Za-z0-9._-]*|\{name\}))*"
    r"(?:\?[a-z_]{1,40}=[A-Za-z0-9_]{1,40})?$"
)
_Member = Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
_Kind = Annotated[str, Field(pattern=r"^[a-z]{1,20}$")]


class Call(Given):
    """A change over the REST API, and where a person goes on after it."""

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: str = Field(pattern=_PATH, max_length=300, description="Below `api/v1/`; `{name}` is what is typed.")
    body: dict[str, Any] | None = None
    match: str | None = Field(default=None, pattern=r"^[!-~]{1,200}$", description="Of If-Match.")
    new: bool = Field(default=False, strict=True, description="Whether what is written must not be there yet.")
    go: str | None = Field(default=None, max_length=200, description="The page after it; the present one unless given.")
    at: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,80}$", description="The element that it shows.")
    sure: str | None = Field(default=None, max_length=600, description="What a person is asked first.")
    yes: str | None = Field(default=None, max_length=60, description="What the button says that goes on then.")
    fields: dict[_Member, _Kind] = Field(default={}, max_length=4, description="Typed members of the body.")
    picks: bool = Field(default=False, strict=True, description="Whether the chosen signatures are the source.")

    @model_validator(mode="after")
    def _check_question(self) -> Self:
        # The page that asks sends on the call, and the members of its body that were typed.
        if self.sure is not None and (self.picks or "{name}" in self.path):
            raise ValueError("what is chosen is not asked about")
        return self


def call_text(**members: Any) -> Markup:
    """Return a call as the value of an attribute between single quotes; members that are None are left out.

    It is not looked at before it is sent back: there is one in every row of a page.
    """
    text = _encoded({name: value for name, value in members.items() if value is not None})
    # Fewer letters than if each double quote were escaped.
    return Markup(text.translate(_ESCAPES))  # noqa: S704 - escaped here


def read_call(text: str) -> Call:
    """Return the call that a form sent; a 422 `Problem` for what no page of ours says, 413 for one that is too long."""
    if len(text) > _LONGEST:
        raise Problem(413, "too-large", "the call of the form is larger than 8 KiB")
    try:
        data = text.encode()
        check_values(data)
        return Call.model_validate_json(data)
    except (ValidationError, UnicodeEncodeError):
        raise Problem(422, "invalid", "this is no form of ours; load the page anew") from None
