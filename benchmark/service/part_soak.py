"""What 200 streams leave that were opened and dropped, and as many events as 20 minutes can bring."""

import tempfile

from harness.result import Figure, Goal, Result

from service.soak import BATCHES_OF_20_MINUTES, PAUSE_S, soak

__all__ = ["measure"]


def measure(quick: bool) -> Result:
    """Soak a process of its own."""
    clients, batches, wave, warming = (10, 40, 5, 20) if quick else (200, BATCHES_OF_20_MINUTES, 50, 300)
    with tempfile.TemporaryDirectory() as folder:
        soaked = soak(folder, clients=clients, batches=batches, wave=wave, warming=warming)
    return Result(
        name="service_soak",
        question=f"What is left of {clients} streams that were dropped while {soaked.happened:,} events happened?",
        figures=[
            Figure("memory grown", soaked.grown_mb, "MB", Goal(5.0)),
            Figure("threads left", soaked.threads, "", Goal(0)),
            Figure("sockets left", soaked.sockets, "", Goal(0)),
            Figure("tracebacks", soaked.traces, "", Goal(0)),
            Figure("memory after", soaked.memory_mb, "MB"),
            Figure("messages that arrived", soaked.told),
            Figure("events that were told as `resync`", soaked.dropped),
        ],
        settings={"clients": soaked.clients, "at once": wave, "times told": batches, "pause s": PAUSE_S},
    )
