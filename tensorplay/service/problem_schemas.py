"""What the REST API says when something is wrong, as its OpenAPI document describes it."""

from typing import Any

from pydantic import BaseModel, Field

__all__ = ["STOPPING", "InvalidPart", "ProblemModel"]


class InvalidPart(BaseModel):
    """A part of a request that does not fit."""

    loc: list[str] = Field(description="Where it is.", examples=[["query", "limit"]])
    msg: str = Field(description="Why it does not fit, for people.")
    type: str = Field(description="The same for programs.")


class ProblemModel(BaseModel):
    """An error, as RFC 9457 has it; some have further members."""

    type: str = Field(examples=["urn:tensorplay:problem:not-found"])
    title: str
    status: int
    detail: str
    request_id: str = Field(description="As the header `X-Request-ID` of the answer, and as the log has it.")
    errors: list[InvalidPart] = Field(default=[], description="Of 422: what does not fit.")


STOPPING: dict[int | str, dict[str, Any]] = {
    503: {"model": ProblemModel, "description": "The service is about to stop."}
}
"""How the OpenAPI document describes that a service which stops refuses."""
