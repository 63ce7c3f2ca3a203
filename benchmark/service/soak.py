"""Clients that come and go while events pour: what that leaves in the process that is listened to."""

import time
from typing import NamedTuple

from service.told import ToldProcess

__all__ = ["BATCHES_OF_20_MINUTES", "PAUSE_S", "Soaked", "soak"]

BATCHES_OF_20_MINUTES = 20 * 60 * 4
"""A stream is told what happened four times a second at most; each time of everything that can happen."""

PAUSE_S = 0.005
"""The time between them here, in place of a quarter of a second."""

_WAVE = 50
_WARMING = 300


class Soaked(NamedTuple):
    """What was left, compared with before, after a warm-up; and what went over the wire."""

    grown_mb: float
    memory_mb: float
    threads: int
    sockets: int
    clients: int
    happened: int
    told: int
    dropped: int
    traces: int


def soak(folder: str, *, clients: int, batches: int, wave: int = _WAVE, warming: int = _WARMING) -> Soaked:
    """Open `clients` streams, `wave` at a time, and drop each wave without a word while it is told of events."""
    waves = max(1, clients // wave)
    with (
        ToldProcess("service.host", directory=folder) as host,
        ToldProcess("service.clients", directory=folder) as many,
    ):
        url = host.ask("start", least_pause_s=PAUSE_S)["url"]

        def run(count: int, batches: int) -> int:
            if many.ask("open", url=url, count=count) != count:
                raise RuntimeError("not every stream began")
            host.begin("happen", batches=batches, pause_s=PAUSE_S)
            # They hang up while they are being told.
            time.sleep(0.9 * batches * PAUSE_S)
            many.ask("drop")
            happened: int = host.answer()
            host.ask("wait_for_streams", wanted=0)
            return happened

        # The rings and the log must be full, and what is made once be made.
        run(wave, warming)
        before, memory = host.ask("census"), host.ask("memory_mb")
        told, dropped = many.ask("heard")["events"], host.ask("dropped")
        happened = sum(run(wave, batches // waves) for _ in range(waves))
        after, memory_after = host.ask("census"), host.ask("memory_mb")
        soaked = Soaked(
            grown_mb=memory_after - memory,
            memory_mb=memory_after,
            threads=after["threads"] - before["threads"],
            sockets=after["sockets"] - before["sockets"],
            clients=wave * waves,
            happened=happened,
            told=many.ask("heard")["events"] - told,
            dropped=host.ask("dropped") - dropped,
            traces=host.written().count("Traceback"),
        )
        host.ask("stop")
    return soaked
