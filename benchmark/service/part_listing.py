"""How long `GET /results?limit=100` takes among 50,000 winners, and how long it holds the host's own thread up."""

import http.client
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness.quiet import QUIET_SHARE, Bystanders
from harness.result import Figure, Goal, Result
from harness.spread import spread_of

from service.told import ToldProcess
from tensorplay.measure.statistics import median

__all__ = ["WINNERS", "measure"]

WINNERS = 50_000
_PATH = "/api/v1/results?limit=100"
_FEWEST = 7
_MOST_S = 180.0
_MS, _STALL_MS = Goal(15.0), Goal(10.0)


def measure(quick: bool) -> Result:
    """Ask over fresh and kept connections by turns, then while a tight loop runs in the host."""
    winners, requests, loops, seconds = (500, 5, 2, 0.2) if quick else (WINNERS, 300, 21, 1.0)
    bystanders = Bystanders()
    with tempfile.TemporaryDirectory() as folder, ToldProcess("service.host", directory=folder) as host:
        if host.ask("load", winners=winners) != winners:
            raise RuntimeError("not every winner was read")
        address = urlsplit(host.ask("start")["url"]).netloc
        first_ms = _fresh_ms(address)
        kept = http.client.HTTPConnection(address, timeout=30)
        fresh_ms, kept_ms, changed_ms = [], [], []
        for number in range(requests):
            fresh_ms.append(_fresh_ms(address))
            kept_ms.append(_ms(kept))
            if number % 10 == 0:
                host.ask("record", number=number)
                changed_ms.append(_ms(kept))
        stalls = _stalls(host, kept, loops, seconds, requests)
        kept.close()
        host.ask("stop")
    return Result(
        name="service_listing",
        question=f"How long does GET {_PATH} take with {winners:,} winners, and what does it cost the host's thread?",
        figures=[
            _figure("fresh connections", fresh_ms, _MS),
            _figure("kept connection", kept_ms, _MS),
            _figure("kept connection, the first after a new winner", changed_ms, _MS),
            Figure("the very first", first_ms, "ms"),
            _figure("longest stall in a second of requests", [each.asked for each in stalls], _STALL_MS),
            _figure("longest stall in such a second after a new winner", [each.new for each in stalls], _STALL_MS),
            _figure("longest stall in a second without requests", [each.alone for each in stalls], None),
            _figure("by how much longer with requests", [each.asked - each.alone for each in stalls], None),
        ],
        settings={
            "winners": winners,
            "requests": requests,
            "seconds of the loop": seconds,
            "p99 ms": {"fresh": _late(fresh_ms), "kept": _late(kept_ms)},
            "seconds of each kind": len(stalls),
            "processor share of others": bystanders.share(),
            "processor share of others in these seconds": median([each.others for each in stalls]),
        },
    )


def _figure(name: str, values: Sequence[float], goal: Goal | None) -> Figure:
    spread = spread_of(values)
    return Figure(name, spread.median, "ms", goal, spread)


def _late(values: Sequence[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]


def _fresh_ms(address: str) -> float:
    """Return the milliseconds of a request with its connection."""
    begin = time.perf_counter()
    connection = http.client.HTTPConnection(address, timeout=30)
    _get(connection)
    taken = (time.perf_counter() - begin) * 1e3
    connection.close()
    return taken


def _ms(connection: http.client.HTTPConnection) -> float:
    begin = time.perf_counter()
    _get(connection)
    return (time.perf_counter() - begin) * 1e3


def _get(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", _PATH)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200 or len(body) < 1000:
        raise RuntimeError(f"{response.status}: {body[:200]!r}")


def _ask_for(connection: http.client.HTTPConnection, seconds: float) -> None:
    """Send one request after the other for a while; each begins a fiftieth of a second after the last has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _get(connection)
        time.sleep(0.02)


class _Stalls(NamedTuple):
    """Milliseconds of the longest gaps in one second each: alone, with requests, and with those after a new winner."""

    alone: float
    asked: float
    new: float
    others: float


def _stalls(
    host: ToldProcess, connection: http.client.HTTPConnection, count: int, seconds: float, number: int
) -> Sequence[_Stalls]:
    """Measure until so many were quiet; when that takes too long, the quieter half counts, and `others` tells."""
    bystanders = Bystanders(own_seconds=lambda: time.process_time() + host.computed_s())
    end = time.monotonic() + _MOST_S
    every: list[_Stalls] = []
    while len(quiet := [each for each in every if each.others <= QUIET_SHARE]) < count and time.monotonic() < end:
        bystanders.share()
        alone = _longest_ms(host, seconds, lambda: None)
        asked = _longest_ms(host, seconds, lambda: _ask_for(connection, 0.6 * seconds))
        host.ask("record", number=number + len(every))
        new = _longest_ms(host, seconds, lambda: _ask_for(connection, 0.6 * seconds))
        every.append(_Stalls(alone, asked, new, bystanders.share()))
        if seconds < 1.0 and len(every) == count:
            break
    half = sorted(every, key=lambda each: each.others)[: max(_FEWEST, len(every) // 2)]
    return quiet if len(quiet) >= min(_FEWEST, count) else half


def _longest_ms(host: ToldProcess, seconds: float, meanwhile: Callable[[], Any]) -> float:
    """Return the longest gap in a tight loop of the host's main thread, while something is done here."""
    host.begin("gaps_ms", seconds=seconds)
    time.sleep(0.1 * seconds)
    meanwhile()
    gaps: list[float] = host.answer()
    return gaps[0] if gaps else 0.5
