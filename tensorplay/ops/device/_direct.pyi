from collections.abc import Callable, Sequence
from typing import Any

class DirectProducts:
    def __init__(
        self,
        exchange: object,
        types: tuple[type, ...],
        allows_tf32: Callable[[], bool],
        note_written: Callable[[Sequence[Any]], object],
        long_way: Callable[[Any, Any, Any, Any], Any],
        launcher: object | None,
    ) -> None: ...
    def __call__(self, context: Any, a: Any, b: Any, out: Any, /) -> Any: ...
    def add(
        self,
        plans: dict[Any, Any],
        direct: Any,
        make_check: Callable[..., Callable[..., bool]],
        a: Any,
        b: Any,
        out: Any,
        /,
    ) -> bool: ...
