"""What every model of a request has in common."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = ["Given"]

_MOST_MEMBERS = 100


class Given(BaseModel):
    """What a client gives: nothing that it was not asked for."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_members(cls, given: Any) -> Any:
        # Else each of them is told of, in one piece: thirty thousand for a tenth of a second.
        if isinstance(given, dict) and len(given) > _MOST_MEMBERS:
            raise ValueError(f"{len(given)} members; allowed: those that the document names, {_MOST_MEMBERS} at most")
        return given
