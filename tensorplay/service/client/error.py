"""The one error of the clients."""

from tensorplay.errors import TensorPlayError

__all__ = ["ServiceError"]


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
    """

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{detail} ({code}{f', HTTP {status}' if status else ''})")
        self.status = status
        self.code = code
        self.detail = detail

    def __reduce__(self) -> tuple[type["ServiceError"], tuple[int, str, str]]:
        return type(self), (self.status, self.code, self.detail)
