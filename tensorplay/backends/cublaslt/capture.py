"""Whether a graph capture is live, asked so that no capture is disturbed.

What is seen: a capture on the stream that is asked about, in any mode, whoever began it; and a capture on any
*blocking* stream of the current device, on any thread, since the legacy default stream then answers
`CUDA_ERROR_STREAM_CAPTURE_IMPLICIT` without invalidating it.

What is not: a capture on another *non-blocking* stream (torch's and CuPy's are) that the call at hand does not use.
The driver has no question for that: every call that would notice is one of those that invalidate a capture in global
mode. So measuring does not rely on having seen everything: it happens on a private stream with the thread in relaxed
mode (`device.relaxed_capture`), where allocating and synchronising cannot disturb a capture elsewhere.
"""

from tensorplay.backends.cublaslt.device import current, device, device_count
from tensorplay.backends.cublaslt.library import driver
from tensorplay.backends.cublaslt.status import explain
from tensorplay.errors import LaunchError

__all__ = ["LEGACY", "PER_THREAD", "is_any_capture_seen", "is_stream_capturing"]

LEGACY = 1
"""The handle of the legacy default stream, as 0 is; the driver's own name for it."""

PER_THREAD = 2
"""The handle of the calling thread's default stream."""

_IMPLICIT = 906
# The thread has no context, or one that is gone: there is nothing that could capture.
_NO_CONTEXT = frozenset({3, 4, 201, 709})


def is_stream_capturing(stream: int) -> bool:
    """Return whether this stream is in a capture, an invalidated one included; `LaunchError` for no stream."""
    status, state = driver().cuStreamIsCapturing(stream)
    number = int(status)
    if number == 0:
        return int(state) != 0
    if number == _IMPLICIT:
        return True
    if number in _NO_CONTEXT:
        return False
    raise LaunchError(f"asking stream {stream:#x} whether it is capturing failed: {explain(number)}")


def is_any_capture_seen(stream: int | None, ordinal: int | None = None) -> bool:
    """Return whether a capture is live on the stream, or on any stream where it can be seen; see the module.

    Both are asked about on the device of that ordinal, the current one for None: default streams have the same handles
    on each.
    """
    device_count()
    if ordinal is None or int(driver().cuCtxGetCurrent()[1]) == int(device(ordinal).context):
        return _is_seen(stream)
    with current(ordinal):
        return _is_seen(stream)


def _is_seen(stream: int | None) -> bool:
    if stream and is_stream_capturing(stream):
        return True
    return is_stream_capturing(LEGACY)
