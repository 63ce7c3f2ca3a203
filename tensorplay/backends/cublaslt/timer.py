"""Times plans between events on the device, never by the host's clock.

Launched one by one from Python, a kernel of 12 us reads 31 to 49 us, in the wrong order: the launch is what is timed.
So a spin keeps the stream busy while everything is enqueued, and what is read of several launches replays a graph:
between launches of a stream lie 1.0 to 1.6 us, by kernel, which is a tenth of a kernel of 7 us.

While a stream is captured, no thread may wait for the whole device: the driver answers with an error, whatever the
capture's mode. So where another thread of the program could do that, nothing is captured, and careful samples are
launched behind a spin too, fewer launches at a time.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import ceil

from tensorplay.backends.base import Plan
from tensorplay.backends.cublaslt.device import current, relaxed_capture
from tensorplay.backends.cublaslt.graph import Graph
from tensorplay.backends.cublaslt.scratch import ScratchSet
from tensorplay.backends.cublaslt.spin import spin
from tensorplay.backends.cublaslt.stream import Event, synchronize
from tensorplay.errors import LaunchError, MeasurementError

__all__ = ["CudaTimer"]

_SPIN_NS = 100_000
# What the host may take to enqueue one launch of a plan, and one replay with its event.
_LAUNCH_NS, _REPLAY_NS = 10_000, 25_000
# How often an attempt may be repeated, with four times the spin, when the host was interrupted while enqueueing.
_ATTEMPTS = 3
_LONGER = 4
# A sample covers this time at least, and each set of operands once unless that takes much longer.
_SAMPLE_MS, _ROTATION_MS = 0.1, 2.0
_MOST_LAUNCHES = 512
# The driver lets about a thousand launches wait, and a launch may be two; a round is eight samples, and one untimed.
_MOST_UNCAPTURED = 28

# Threads of ours wait for no device but within their own measuring.
_OWN_THREADS = "tensorplay"


class CudaTimer:
    """Launches plans on sets of operands in turn; implements `tensorplay.typing.Timer` for plans.

    All plans of a timer are launched the same number of times a sample, so what a replay costs weighs the same.

    Parameters
    ----------
    ordinal : int
        The device.
    stream : int
        Private to measuring.
    sets : sequence of ScratchSet
        Each launch uses the next; at least one.
    """

    def __init__(self, ordinal: int, stream: int, sets: Sequence[ScratchSet]) -> None:
        self._ordinal = ordinal
        self._stream = stream
        self._sets = list(sets)
        self._turn = 0
        self._fastest_ms = 0.0
        self._launches = 0
        self._events: list[Event] = []
        self._may_capture = _is_alone()
        # None for a plan that cannot be captured.
        self._graphs: dict[Plan, Graph | None] = {}

    def warm_up(self, candidate: Plan) -> None:
        """Run once, untimed; raises `LaunchError` when that fails, on the device too."""
        with self._session():
            self._launch(candidate, 1)
            synchronize(self._stream)

    def screen(self, candidate: Plan, launches: int) -> float:
        """Return the mean of `launches` back-to-back launches behind a spin, in milliseconds."""
        with self._session():
            start, end = self._event(0), self._event(1)
            graph = self._captured(candidate, launches) if launches > 1 else None

            def enqueue() -> None:
                start.record(self._stream)
                if graph is None:
                    self._launch(candidate, launches)
                else:
                    graph.launch(self._stream)
                end.record(self._stream)

            try:
                self._behind_spin(enqueue, launches * _LAUNCH_NS if graph is None else _REPLAY_NS)
            finally:
                if graph is not None:
                    graph.close()
            mean = end.milliseconds_since(start) / launches
        if not self._fastest_ms or 0.0 < mean < self._fastest_ms:
            self._fastest_ms = mean
        return mean

    def sample(self, order: Sequence[Plan]) -> list[float]:
        """Return the mean launch of one replay for each place of `order`, in milliseconds.

        The replays follow one another on the device without a gap, and the first is preceded by one untimed.
        """
        if not self._launches:
            self._launches = self._chosen_launches(order[0])
        with self._session():
            graphs = [self._graph(plan) for plan in order]
            events = [self._event(place) for place in range(len(order) + 1)]
            captured = sum(graph is not None for graph in graphs)
            host_ns = captured * _REPLAY_NS + (len(order) - captured) * self._launches * _LAUNCH_NS

            def enqueue() -> None:
                self._replay(order[0], graphs[0])
                events[0].record(self._stream)
                for plan, graph, event in zip(order, graphs, events[1:], strict=True):
                    self._replay(plan, graph)
                    event.record(self._stream)

            self._behind_spin(enqueue, host_ns)
            return [end.milliseconds_since(start) / self._launches for start, end in pairwise(events)]

    def sample_launches(self, candidate: Plan) -> int:
        """Return how many launches a sample is the mean of, the same for all plans; 1 before the first reading."""
        del candidate
        return self._launches or (self._fitting(self._fastest_ms) if self._fastest_ms else 1)

    def close(self) -> None:
        """Give back graphs and events; every later call raises `MeasurementError`."""
        self._sets = []
        for graph in self._graphs.values():
            if graph is not None:
                graph.close()
        for event in self._events:
            event.close()
        self._graphs, self._events = {}, []

    @contextmanager
    def _session(self) -> Iterator[None]:
        if not self._sets:
            raise MeasurementError("this trial is closed")
        with current(self._ordinal), relaxed_capture():
            yield

    def _behind_spin(self, enqueue: Callable[[], None], host_ns: int) -> None:
        """Run `enqueue` while the device spins, and wait; once more when the device was done spinning before."""
        spinning = _SPIN_NS + host_ns
        gate = self._event(-1)
        for _attempt in range(_ATTEMPTS):
            spin(self._ordinal, self._stream, spinning)
            gate.record(self._stream)
            enqueue()
            was_late = gate.has_passed()
            synchronize(self._stream)
            if not was_late:
                return
            spinning *= _LONGER

    def _launch(self, plan: Plan, launches: int) -> None:
        run, sets, stream, turn = plan.run, self._sets, self._stream, self._turn
        try:
            for place in range(turn, turn + launches):
                run(*sets[place % len(sets)], stream)
        except LaunchError:
            raise
        except (TypeError, ValueError, MemoryError) as error:
            raise LaunchError(f"{plan.kernel} failed: {type(error).__name__}: {error}") from error
        self._turn = (turn + launches) % len(sets)

    def _replay(self, plan: Plan, graph: Graph | None) -> None:
        if graph is None:
            self._launch(plan, self._launches)
        else:
            graph.launch(self._stream)

    def _graph(self, plan: Plan) -> Graph | None:
        if not self._may_capture:
            return None
        if plan not in self._graphs:
            # All graphs begin with the same set, so that none has warmer operands.
            self._turn = 0
            graph = self._captured(plan, self._launches)
            if graph is not None:
                self._graphs[plan] = graph
        return self._graphs.get(plan)

    def _captured(self, plan: Plan, launches: int) -> Graph | None:
        """Return a new graph of the plan's launches; None where it cannot be captured, from then on."""
        if not self._may_capture or (plan in self._graphs and self._graphs[plan] is None):
            return None
        try:
            return Graph(self._stream, lambda: self._launch(plan, launches))
        except LaunchError:
            self._launch(plan, 1)
            synchronize(self._stream)
            self._graphs[plan] = None
            return None

    def _event(self, place: int) -> Event:
        # Place -1 is the gate's.
        while len(self._events) < place + 2:
            self._events.append(Event())
        return self._events[place + 1]

    def _chosen_launches(self, plan: Plan) -> int:
        return self._fitting(self._fastest_ms or self.screen(plan, 1))

    def _fitting(self, one_ms: float) -> int:
        one = max(one_ms, 1e-4)
        if not self._may_capture:
            return min(_MOST_UNCAPTURED, ceil(_SAMPLE_MS / one))
        rotation = len(self._sets)
        if rotation * one > _ROTATION_MS:
            return max(1, ceil(_SAMPLE_MS / one))
        return min(_MOST_LAUNCHES, rotation * max(1, ceil(_SAMPLE_MS / (rotation * one))))


def _is_alone() -> bool:
    """Return whether no other thread of Python's could wait for a device now."""
    here = threading.current_thread()
    return all(thread is here or thread.name.startswith(_OWN_THREADS) for thread in threading.enumerate())
