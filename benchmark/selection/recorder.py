"""Kernel time of what can be captured: graphs on one private stream, and what stands in for one that cannot."""

from collections.abc import Callable, Sequence
from typing import Any

from harness.cuda_timing import Replay

from tensorplay.measure.statistics import median

__all__ = ["Recorder", "behind_delay"]

Call = Callable[[], object]

_DELAYED_CALLS = 20
_DELAY_CYCLES = 4_000_000
_LONGEST_DELAY_CYCLES = 64_000_000
_REPEATS = 3


class Recorder:
    """Captures calls on a stream of its own, on which they have run before: workspaces are kept by the stream.

    Unlike `harness.cuda_timing.captured` it collects no garbage, which takes longer than a capture once several
    frameworks are loaded, and lets a library ask for memory under the capture.
    """

    def __init__(self) -> None:
        import torch

        self._stream: Any = torch.cuda.Stream()

    def warm_up(self, calls: Sequence[Call]) -> None:
        """Run each call once, and wait: what fails on the device raises here."""
        import torch

        torch.cuda.synchronize()
        with torch.cuda.stream(self._stream):
            for call in calls:
                call()
        torch.cuda.synchronize()

    def captured(self, calls: Sequence[Call], repeats: int) -> Replay:
        """Return a graph of the calls, one after another, all of them `repeats` times.

        Raises whatever a call raises under a capture; the stream is usable again then.
        """
        import torch

        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self._stream):
            graph.capture_begin(capture_error_mode="relaxed")
            try:
                for _ in range(repeats):
                    for call in calls:
                        call()
            except BaseException:
                _end(graph)
                raise
            graph.capture_end()
        return Replay(graph, repeats * len(calls))


def behind_delay(calls: Sequence[Call]) -> Callable[[], float]:
    """Return a clock for calls that cannot be captured: microseconds of one, many being enqueued behind a delay."""
    import torch

    turn = 0
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once(cycles: int) -> float | None:
        nonlocal turn
        torch.cuda.synchronize()
        torch.cuda._sleep(cycles)
        begin.record()
        for _ in range(_DELAYED_CALLS):
            calls[turn % len(calls)]()
            turn += 1
        end.record()
        was_late = begin.query()
        end.synchronize()
        return None if was_late else 1e3 * float(begin.elapsed_time(end)) / _DELAYED_CALLS

    def us() -> float:
        cycles = _DELAY_CYCLES
        while True:
            values = [once(cycles) for _ in range(_REPEATS)]
            in_time = [value for value in values if value is not None]
            if in_time:
                return median(in_time)
            if cycles >= _LONGEST_DELAY_CYCLES:
                raise RuntimeError(f"{_DELAYED_CALLS} calls take the host longer than the delay of {cycles} cycles")
            cycles *= 4

    return us


def _end(graph: Any) -> None:
    try:
        graph.capture_end()
    except RuntimeError:
        # The capture was broken: that is what the caller is told of.
        return
