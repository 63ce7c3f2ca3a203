"""What a hit costs while the service runs and eight clients listen, over the same call without a service.

Both are measured by turns in one process, with the clients in another. A thread lets events happen all the while, with
and without a service: ten a second, more than a client is told of at once. Quiet is without that thread.
"""

import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from statistics import fmean
from typing import NamedTuple

import numpy as np
from harness.host_shapes import Shape
from harness.product import tensorplay_mm
from harness.quiet import QUIET_SHARE, Bystanders
from harness.result import Figure, Goal, Result
from harness.spread import ratio_of_medians
from harness.timing import Contestant, loops_to_fill

from service.told import ToldProcess, wait_until
from tensorplay.gemm import signature_of
from tensorplay.gemm.problem import CPU
from tensorplay.measure.statistics import median
from tensorplay.ops.layout import matrix_problem
from tensorplay.runtime import listeners as events
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import state
from tensorplay.service.server import Service, start

__all__ = ["CLIENTS", "measure"]

CLIENTS = 8
SHAPES = (Shape("small", "float32", 64, 64, 64), Shape("realistic", "float32", 512, 512, 512))
_EVENTS_PER_S = 10.0
_BLOCK_S = 0.25
_ROUNDS = 31
_FEWEST = 9
_MOST_S = 240.0
_GOAL = Goal(1.02)


class _Case(NamedTuple):
    shape: Shape
    is_busy: bool

    def __str__(self) -> str:
        how = f"{_EVENTS_PER_S:g} events a second" if self.is_busy else "no events"
        return f"{self.shape.m}x{self.shape.n}x{self.shape.k}, {how}"


class _Taken(NamedTuple):
    """Seconds of one call: by the clock, and computed by all threads of this process.

    `served` is what the service's thread computed in a second, whatever else the machine did.
    """

    passed: float
    computed: float
    served: float


class _Pair(NamedTuple):
    """One case in one round, without and with the service."""

    off: _Taken
    on: _Taken


class _Round(NamedTuple):
    """All cases within seconds of each other, and the share that others took of the processors meanwhile."""

    pairs: dict[_Case, _Pair]
    others: float


def measure(quick: bool) -> Result:
    """Run every case with and without, as many rounds as are needed."""
    rounds, seconds = (1, 0.25) if quick else (_ROUNDS, _BLOCK_S)
    cases = [_Case(shape, is_busy) for shape in SHAPES for is_busy in (True, False)]
    with (
        tempfile.TemporaryDirectory() as folder,
        ToldProcess("service.clients", directory=folder) as clients,
    ):
        context = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=folder)
        contestants = {shape: _hit(context, shape) for shape in SHAPES}
        loops = {shape: loops_to_fill([each], seconds) for shape, each in contestants.items()}
        with _service(context, clients):
            # Once for what is imported and made only the first time.
            before = context.stats()["measured"]
        measured = _rounds(context, clients, contestants, loops, cases, rounds)
        heard = clients.ask("heard")
        if context.stats()["measured"] != before:
            raise RuntimeError("these were no hits")
        state.context = None
        context.close()
    if not heard["events"]:
        raise RuntimeError("no client heard anything")
    return Result(
        name="service_hits",
        question=f"What does a hit cost with the dashboard on and {CLIENTS} clients streaming, over dashboard off?",
        figures=[
            *(_figure(str(case), [each.pairs[case] for each in measured], _GOAL) for case in cases),
            *(_computed_figure(case, [each.pairs[case] for each in measured]) for case in cases),
            *(_served_figure(case, [each.pairs[case] for each in measured]) for case in cases),
        ],
        settings={
            "rounds": len(measured),
            "order": "off on on off",
            "seconds a block": seconds,
            "calls a block": {str(shape): each for shape, each in loops.items()},
            "events heard": heard["events"],
            "processor share of others": median([each.others for each in measured]),
        },
        rows=[
            {
                "case": str(case),
                "off us": 1e6 * median([each.pairs[case].off.passed for each in measured]),
                "on us": 1e6 * median([each.pairs[case].on.passed for each in measured]),
                "off us computed": 1e6 * median([each.pairs[case].off.computed for each in measured]),
                "on us computed": 1e6 * median([each.pairs[case].on.computed for each in measured]),
            }
            for case in cases
        ],
    )


def _figure(name: str, pairs: Sequence[_Pair], goal: Goal | None) -> Figure:
    spread = ratio_of_medians([pair.on.passed for pair in pairs], [pair.off.passed for pair in pairs])
    return Figure(name, spread.median, "x", goal, spread)


def _computed_figure(case: _Case, pairs: Sequence[_Pair]) -> Figure:
    """Return the ratio of processor time, which other processes can change little of."""
    spread = ratio_of_medians([pair.on.computed for pair in pairs], [pair.off.computed for pair in pairs])
    return Figure(f"{case}: processor time", spread.median, "x", None, spread)


def _served_figure(case: _Case, pairs: Sequence[_Pair]) -> Figure:
    """Return how long the service's thread computes in a second: what it takes from the host at least."""
    # Of the whole time: it looks about itself once a second, and most blocks are shorter.
    served = fmean(pair.on.served for pair in pairs)
    return Figure(f"{case}: the service's thread, in a second", 1e3 * served, "ms")


def _hit(context: TuningContext, shape: Shape) -> Contestant:
    """Return a product whose winner is recorded: the first choice, so that nothing else differs."""
    operands = shape.operands(np.random.default_rng(0))
    problem = matrix_problem(*operands)
    if problem is None:
        raise RuntimeError(f"{shape} has no signature")
    context.override(*signature_of(problem), context.backend(CPU).first_choice(problem).kernel)
    return tensorplay_mm(operands, context)


def _rounds(
    context: TuningContext,
    clients: ToldProcess,
    contestants: dict[Shape, Contestant],
    loops: dict[Shape, int],
    cases: Sequence[_Case],
    rounds: int,
) -> list[_Round]:
    """Run rounds until so many were quiet; when that takes too long, the quieter half counts, and `others` tells."""
    rng = random.Random(0)  # noqa: S311 - an order, not a secret
    end = time.monotonic() + _MOST_S
    every: list[_Round] = []
    while sum(each.others <= QUIET_SHARE for each in every) < rounds and time.monotonic() < end:
        order = rng.sample(list(cases), len(cases))
        bystanders, shares = Bystanders(), []
        taken: dict[bool, dict[_Case, _Taken]] = {False: {}, True: {}}
        # The order is turned round each time: off on, on off, off on, ...
        for has_service in (False, True) if len(every) % 2 == 0 else (True, False):
            with _service(context, clients) if has_service else nullcontext(None) as service:
                bystanders.share()
                for case in order:
                    with _events(context) if case.is_busy else nullcontext():
                        taken[has_service][case] = _block(contestants[case.shape], loops[case.shape], service)
                shares.append(bystanders.share())
        every.append(_Round({case: _Pair(taken[False][case], taken[True][case]) for case in cases}, max(shares)))
        if rounds < _FEWEST and len(every) == rounds:
            break
    quiet = [each for each in every if each.others <= QUIET_SHARE]
    half = sorted(every, key=lambda each: each.others)[: max(_FEWEST, len(every) // 2)]
    return quiet if len(quiet) >= min(_FEWEST, rounds) else half


def _block(contestant: Contestant, loops: int, service: Service | None) -> _Taken:
    served, begin = _computed_by(service), time.process_time()
    passed = contestant.block(loops)
    computed = (time.process_time() - begin) / loops
    return _Taken(passed, computed, (_computed_by(service) - served) / (passed * loops))


def _computed_by(service: Service | None) -> float:
    """Return the seconds that a service's thread has computed."""
    ident = None if service is None else service._thread.ident
    return 0.0 if ident is None else time.clock_gettime(time.pthread_getcpuclockid(ident))


@contextmanager
def _service(context: TuningContext, clients: ToldProcess) -> Iterator[Service]:
    with start(context=context) as service:
        if clients.ask("open", url=service.url, count=CLIENTS) != CLIENTS:
            raise RuntimeError("not every stream began")
        hub = service._state.hub
        wait_until(lambda: hub.clients == CLIENTS, "all streams are open")
        time.sleep(0.1)
        try:
            yield service
        finally:
            clients.ask("drop")


@contextmanager
def _events(context: TuningContext) -> Iterator[None]:
    """Let events happen on a thread."""
    is_over = threading.Event()

    def tell() -> None:
        for number in count():
            if is_over.wait(1 / _EVENTS_PER_S):
                return
            context.listeners.tell(
                events.UNTUNED, op="GemmTunableOp_Float32", params=f"taN_m{number}_n1_k1_bias0_devcpu"
            )

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
