"""The arrays that products take and return, for type checkers: who multiplies tensors gets a tensor."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

__all__ = ["DeviceArrayT", "Exchangeable"]


class Exchangeable(Protocol):
    """An array of any library, by what all of them have; NumPy's are ones too."""

    @property
    def __dlpack__(self) -> Callable[..., Any]:
        """Return what shows the memory to other libraries."""


DeviceArrayT = TypeVar("DeviceArrayT", bound=Exchangeable)
