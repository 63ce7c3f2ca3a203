"""The plans that a context has ready."""

from typing import Any

from tensorplay.runtime.resolved import Resolved

__all__ = ["Plans"]


class Plans(dict[Any, Resolved]):
    """What calls run, by the layout of their operands; replaced by another one whenever that may have changed.

    Attributes
    ----------
    table : object
        What a hot path in C keeps of it, to be found sooner; goes with it. None where there is nothing.
    """

    __slots__ = ("table",)

    def __init__(self, *resolved: Any) -> None:
        super().__init__(*resolved)
        self.table: object = None
