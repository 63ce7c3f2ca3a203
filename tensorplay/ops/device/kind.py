"""Kinds: one for each array library, that reads its arrays as views and makes new arrays of it.

A library is never imported here: whoever hands over its array has done so.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplay.errors import OperandError
from tensorplay.ops.device.view import DeviceView

__all__ = ["Kind", "library", "no_copy"]


def library(name: str) -> Any:
    """Return the library that an array at hand belongs to, which is imported therefore."""
    return sys.modules[name]


def no_copy(array: object, why: str) -> OperandError:
    """Return the error for an operand that its library's own means cannot make dense."""
    return OperandError(f"an operand of type {type(array).__name__} {why}; copy it to dense memory first")


class Kind(ABC):
    """What is done with the arrays of one library; the methods run on its current stream."""

    name: ClassVar[str]
    is_ordered: ClassVar[bool] = True
    """Whether the library's later work on the arrays waits for ours by itself; else we wait for the device."""

    @abstractmethod
    def is_on_device(self, array: Any) -> bool:
        """Return whether an array of this kind is in CUDA memory."""

    @abstractmethod
    def view(self, array: Any) -> DeviceView:
        """Read an array; `OperandError` when it cannot be described, or its values are not in its memory."""

    @abstractmethod
    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a new dense array on the device of `like`, its contents not set."""

    @abstractmethod
    def zeros(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a new dense array on the device of `like`, all zero."""

    @abstractmethod
    def dense(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a new dense array with the values of `array`, broadcast to `shape`."""

    @abstractmethod
    def assign(self, out: Any, value: Any) -> None:
        """Copy `value`, of the same shape, into `out`, whatever the strides of that are."""

    def plain(self, array: Any) -> Any:
        """Return the array, its values computed where the library had put that off."""
        return array

    def finished(self, array: Any) -> Any:
        """Return a result that `empty` made, as people shall see it."""
        return array

    def note_written(self, results: Sequence[Any]) -> None:
        """Let the library know that arrays given for results have changed, where it keeps account of that."""
        del results

    def allows_tf32(self) -> bool:
        """Return whether the library's user has allowed TF32 for products of float32."""
        return False
