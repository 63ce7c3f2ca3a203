"""How long it takes to stop a service with fifty open streams, and whether that leaves a trace."""

import tempfile

from harness.result import Figure, Goal, Result
from harness.spread import spread_of

from service.told import ToldProcess, wait_until

__all__ = ["STREAMS", "measure"]

STREAMS = 50


def measure(quick: bool) -> Result:
    """Stop and start the service again and again, each time with all streams open and events on their way."""
    repeats, streams = (2, 5) if quick else (15, STREAMS)
    seconds = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ToldProcess("service.host", directory=folder) as host,
        ToldProcess("service.clients", directory=folder) as clients,
    ):
        before: dict[str, int] | None = None
        for _ in range(repeats):
            url = host.ask("start")["url"]
            if clients.ask("open", url=url, count=streams) != streams:
                raise RuntimeError("not every stream began")
            ended = clients.ask("heard")["ended"]
            host.ask("happen", batches=20, pause_s=0.0)
            seconds.append(host.ask("stop"))
            wait_until(lambda ended=ended: clients.ask("heard")["ended"] == ended + streams, "all streams end")  # type: ignore[misc] # bound now
            clients.ask("drop")
            census = host.ask("census")
            before = before or census
            if census != before:
                raise RuntimeError(f"something is left: {census} after {before}")
        traces = host.written().count("Traceback")
    spread = spread_of(seconds)
    return Result(
        name="service_stop",
        question=f"How long does it take to stop a service with {streams} open streams?",
        figures=[
            Figure(f"stop with {streams} open streams: median", spread.median, "s", None, spread),
            Figure(f"stop with {streams} open streams: longest", max(seconds), "s", Goal(1.0)),
            Figure("tracebacks", traces, "", Goal(0)),
        ],
        settings={"repeats": repeats, "streams": streams},
    )
