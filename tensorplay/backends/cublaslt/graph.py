"""Captured graphs: several launches of a plan, replayed without the host's cost of launching them."""

from collections.abc import Callable
from typing import Any

from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.status import check
from tensorplay.errors import LaunchError, TensorPlayError

__all__ = ["Graph", "live_graphs"]

_live: set[int] = set()


class Graph:
    """What `enqueue` puts on the stream, captured and ready to be replayed; give it back with `close`.

    The device's context must be current for all of it, and the thread in relaxed capture mode. Kernels must have
    run before, since loading one is no work for a capture.

    Raises
    ------
    LaunchError
        When the capture fails; the stream is usable again then.
    """

    __slots__ = ("_executable", "_number")

    def __init__(self, stream: int, enqueue: Callable[[], object]) -> None:
        cuda = driver()
        captured = _captured(stream, enqueue)
        try:
            self._executable: Any = check(cuda.cuGraphInstantiate(captured, 0), "instantiating a graph")
        finally:
            check(cuda.cuGraphDestroy(captured), "destroying a graph")
        self._number = int(self._executable)
        _live.add(self._number)
        check(cuda.cuGraphUpload(self._executable, stream), "uploading a graph")

    def launch(self, stream: int) -> None:
        """Enqueue a replay."""
        check(driver().cuGraphLaunch(self._executable, stream), "replaying a graph")

    def close(self) -> None:
        """Give it back."""
        if self._number in _live:
            _live.discard(self._number)
            check(driver().cuGraphExecDestroy(self._executable), "destroying a graph")


def live_graphs() -> int:
    """Return how many graphs exist, for whoever looks for leaks."""
    return len(_live)


def _captured(stream: int, enqueue: Callable[[], object]) -> Any:
    cuda = driver()
    mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    check(cuda.cuStreamBeginCapture(stream, mode), "beginning a capture")
    failure: TensorPlayError | None = None
    try:
        enqueue()
    except TensorPlayError as error:
        failure = error
    ended = cuda.cuStreamEndCapture(stream)
    if failure is not None:
        if int(ended[0]) == 0:
            check(cuda.cuGraphDestroy(ended[1]), "destroying a graph")
        raise LaunchError(f"the plan cannot be captured: {failure}") from failure
    return check(ended, "ending a capture")
