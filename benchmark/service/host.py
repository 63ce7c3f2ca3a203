"""A process that multiplies, with a service in it: what the parts of the benchmark tell it to do."""

import gc
import os
import threading
import time
from itertools import count
from pathlib import Path

from harness.winners import write_winners

from service.told import obey, wait_until
from tensorplay.gemm import GemmProblem, dtype_of_word, signature_of
from tensorplay.gemm.problem import CPU
from tensorplay.runtime import listeners as events
from tensorplay.runtime.context import TuningContext
from tensorplay.service.server import Service, start

__all__ = ["Host"]

_OP = "GemmTunableOp_Float32"
_FILE = "many.csv"
_SIGNATURES = 512


class Host:
    """A context with many winners, and its service."""

    def __init__(self) -> None:
        self._context = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=".")
        self._service: Service | None = None
        self._numbers = count(1)

    def load(self, winners: int) -> int:
        """Load so many winners, and return how many there are."""
        write_winners(Path(_FILE), self._context.get_validators(), winners)
        self._context.set_filename(_FILE)
        if not self._context.read_file():
            raise RuntimeError("the results file was refused")
        return len(self._context.get_results())

    def start(self, least_pause_s: float | None = None) -> dict[str, str]:
        """Start the service, and return its address and token."""
        self._service = start(context=self._context)
        if least_pause_s is not None:
            self._running._state.hub.least_pause_s = least_pause_s
        return {"url": self._running.url, "token": self._running.token}

    @property
    def _running(self) -> Service:
        if self._service is None:
            raise RuntimeError("there is no service")
        return self._service

    def stop(self) -> float:
        """Stop the service, and return the seconds that took."""
        begin = time.perf_counter()
        self._running.stop()
        return time.perf_counter() - begin

    def streams(self) -> int:
        """Return how many streams are open."""
        return self._running._state.hub.clients

    def wait_for_streams(self, wanted: int) -> None:
        """Wait until so many streams are open."""
        wait_until(lambda: self.streams() == wanted, f"{wanted} streams")

    def dropped(self) -> int:
        """Return how many events were dropped."""
        return self._running._state.hub.dropped

    def happen(self, batches: int, pause_s: float) -> int:
        """Let one event of each kind happen, so many times, and return how many events that were.

        They tell of a few hundred signatures, as a process meets them: of each, something is kept for good.
        """
        told = (events.SETTING, events.TUNED, events.REJECTED, events.UNTUNED, events.FILE, events.QUEUED)
        for _ in range(batches):
            for event in told:
                number = next(self._numbers)
                params = f"taN_m{number % _SIGNATURES}_n64_k64_bias0_devcpu"
                self._context.listeners.tell(event, op=_OP, params=params, number=number)
            time.sleep(pause_s)
        return batches * len(told)

    def memory_mb(self) -> float:
        """Return the resident memory after a collection, in MB of 10**6 bytes."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def census(self) -> dict[str, int]:
        """Return how many threads and sockets there are."""
        opened = [each for each in Path("/proc/self/fd").iterdir() if each.is_socket()]
        return {"threads": threading.active_count(), "sockets": len(opened)}

    def gaps_ms(self, seconds: float) -> list[float]:
        """Run a tight loop on this thread for so long; return the gaps above half a millisecond, longest first."""
        found = []
        end = time.perf_counter() + seconds
        before = time.perf_counter()
        while before < end:
            now = time.perf_counter()
            if now - before > 5e-4:
                found.append((now - before) * 1e3)
            before = now
        return sorted(found, reverse=True)

    def change(self, kind: str, number: int) -> float:
        """Change something of a kind to what the number says; return the time at which that began."""
        begin = time.time()
        match kind:
            case "switch":
                self._context.change_setting("tuning", number % 2 == 0)
            case "budget":
                self._context.change_setting("max_tuning_samples", 1000 + number)
            case "winner":
                self.record(number)
            case "untuned":
                self._context.tuning_disable()
                self._context.resolve(_problem("Float32", 2, 20_000 + number), self._context.backend(CPU))
            case "event":
                self._context.listeners.tell(events.QUEUED, op=_OP, params=f"event{number}")
            case _:
                raise ValueError(kind)
        return begin

    def record(self, number: int) -> None:
        """Record one more winner."""
        problem = _problem("BFloat16", 1, 10_000 + number)
        self._context.override(*signature_of(problem), self._context.backend(CPU).first_choice(problem).kernel)


def _problem(word: str, size: int, k: int) -> GemmProblem:
    return GemmProblem(dtype=dtype_of_word(word), m=size, n=size, k=k)


if __name__ == "__main__":
    host = Host()
    names = (
        "load", "start", "stop", "streams", "wait_for_streams", "dropped", "happen", "memory_mb", "census", "gaps_ms",
        "change", "record",
    )  # fmt: skip
    obey({name: getattr(host, name) for name in names})
