from collections.abc import Callable

launcher: object

class Launch:
    def __init__(
        self,
        matmul: int,
        arguments: tuple[int, ...],
        workspace: Callable[[int, int], int] | None,
        workspace_bytes: int,
        refused: Callable[[int], object],
        elsewhere: Callable[[int, int, int, int], object] | None,
        current: int,
        context: int,
        owner: object,
    ) -> None: ...
    def __call__(self, left: int, right: int, out: int, stream: int, /) -> None: ...
