"""The one error of the clients."""

from collections.abc import Iterator, Mapping
from typing import Any

from tensorplay.errors import TensorPlayError

__all__ = ["ServiceError"]

_MOST_REASONS = 10
_LONGEST_REASON = 300


class ServiceError(TensorPlayError):
    """What was asked of a service was not done.

    Attributes
    ----------
    status : int
        Of HTTP; 0 when there was no answer at all.
    code : str
        Names the problem for programs: that of the problem document, or `unreachable`, `timeout`, `bad-answer`.
    detail : str
        What was wrong, and what to do.
    document : mapping
        The whole problem document, with its further members: the `errors` of a request that does not fit, the
        `mismatches` of a file. Empty when there was none.
    """

    def __init__(self, status: int, code: str, detail: str, document: Mapping[str, Any] | None = None) -> None:
        self.document = dict(document or {})
        reasons = "; ".join(_reasons(self.document.get("errors")))
        told = f"{detail}: {reasons}" if reasons else detail
        super().__init__(f"{told} ({code}{f', HTTP {status}' if status else ''})")
        self.status = status
        self.code = code
        self.detail = detail

    def __reduce__(self) -> tuple[type["ServiceError"], tuple[int, str, str, dict[str, Any]]]:
        return type(self), (self.status, self.code, self.detail, self.document)


def _reasons(errors: object) -> Iterator[str]:
    """Yield where in a request something does not fit, and why."""
    for each in errors[:_MOST_REASONS] if isinstance(errors, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("loc"), list):
            yield f"{'.'.join(map(str, each['loc']))}: {each.get('msg')}"[:_LONGEST_REASON]
