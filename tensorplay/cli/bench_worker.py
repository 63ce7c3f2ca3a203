"""The worker of `tensorplay bench`: times one shape in one mode, in a process of its own.

`python -m tensorplay.cli.bench_worker` reads one line of JSON, `{"shape", "mode", "iterations"}`, writes one JSON
object, and ends; it also ends when its standard input does, since then whoever started it is gone. Which mode it is
in the environment has decided already: here it only says whether NumPy is timed beside it.

The answer has `skipped` alone, where the shape cannot be made here, or `first_call_ms`, `steady_ms` and `paired`
(lists, one value for each batch; `paired` are NumPy's times over ours), `fault` (what is wrong with the
values), `signature`, `kernel`, `time_ms` and `verdict` (of the winner, None without one), `not_measured` (why it
could not be), `stats` and `warnings`.
"""

import gc
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from tensorplay.cli.bench_product import BenchProduct, UnsupportedShapeError, make_product
from tensorplay.cli.bench_shape import parse_shape
from tensorplay.cuda import tunable

__all__ = ["main", "time_shape"]

# A batch is long enough for the clock's resolution and short enough to lie between two interruptions.
_BATCH_MS = 1.0
_MOST_CALLS = 1 << 14
# No shape, however large, is timed longer than this, but always a few times.
_PHASE_S = 1.5
_FEWEST_BATCHES = 3

_EXPLAINED = ("kernel", "time_ms", "verdict", "not_measured")

Call = Callable[[], object]


def main() -> None:
    """Answer the one request of this process."""
    answers = _claim_stdout()
    # Ctrl-C reaches the whole group; the parent decides what becomes of this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = time_shape(request)
    answer["warnings"] = [str(warning.message) for warning in caught]
    # Not closed: its end tells the parent that this process has ended.
    os.write(answers, json.dumps(answer).encode())


def time_shape(request: Mapping[str, Any]) -> dict[str, Any]:  # JSON, both ways
    """Return the answer to a request, but for the warnings."""
    try:
        product = make_product(parse_shape(request["shape"]))
    except UnsupportedShapeError as error:
        return {"skipped": str(error)}
    iterations = request["iterations"]
    product.erase()
    first_call_ms = _elapsed_ms(product.ours, 1)
    fault = product.fault()
    calls = _calls_of_a_batch(product.ours)
    steady_ms = _timed(product.ours, calls, iterations)
    paired = _paired(product, calls, iterations) if request["mode"] == "replay" else []
    product.erase()
    product.ours()
    return {
        "first_call_ms": first_call_ms,
        "steady_ms": steady_ms,
        "paired": paired,
        "fault": fault or product.fault(),
        "stats": tunable.stats(),
        **_winner(product),
    }


def _winner(product: BenchProduct) -> dict[str, object]:
    signature = product.signature
    why = {} if signature is None else tunable.explain(*signature)
    return {"signature": signature, **{name: why.get(name) for name in _EXPLAINED}}


def _elapsed_ms(call: Call, calls: int) -> float:
    started = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - started) / 1e6


def _calls_of_a_batch(call: Call) -> int:
    """Return how many calls take as long as a batch should, found by doubling: a power of two."""
    calls = 1
    while _elapsed_ms(call, calls) < _BATCH_MS and calls < _MOST_CALLS:
        calls *= 2
    return calls


def _timed(call: Call, calls: int, iterations: int) -> list[float]:
    """Return the time of one call in milliseconds, from each of `iterations` batches."""
    return _repeated(lambda: _elapsed_ms(call, calls) / calls, iterations)


def _paired(product: BenchProduct, calls: int, iterations: int) -> list[float]:
    """Return how many times longer NumPy takes than we do, from each of `iterations` blocks of four batches.

    In each block the order is NumPy, ours, ours, NumPy: what drifts steadily cancels.
    """

    def ratio() -> float:
        before = _elapsed_ms(product.plain, calls)
        ours = _elapsed_ms(product.ours, calls) + _elapsed_ms(product.ours, calls)
        return (before + _elapsed_ms(product.plain, calls)) / ours

    return _repeated(ratio, iterations)


def _repeated(observe: Callable[[], float], iterations: int) -> list[float]:
    observations: list[float] = []
    end = time.monotonic() + _PHASE_S
    gc.disable()
    try:
        while len(observations) < iterations:
            if len(observations) >= _FEWEST_BATCHES and time.monotonic() > end:
                break
            observations.append(observe())
    finally:
        gc.enable()
    return observations


def _claim_stdout() -> int:
    """Return a descriptor of standard output for the answer; whatever else is written there goes to standard error."""
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _end_with_parent() -> None:
    # Unbuffered: a thread that holds the buffer's lock at exit would be a fatal error.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
