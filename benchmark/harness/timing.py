"""Interleaved timing: what is compared runs in turn, so that a busy or drifting machine hits all of it alike."""

import math
import random
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Contestant", "interleave", "loops_to_fill", "statement"]

_TRIES = 5

Loop = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Contestant:
    """One of the things compared.

    Attributes
    ----------
    loop : callable
        `loop(n)` runs it n times and returns the seconds that took.
    before : callable or None
        Runs untimed before each block: what sets the stage, such as choosing the context.
    """

    loop: Loop
    before: Callable[[], object] | None = None

    def block(self, loops: int) -> float:
        """Return the seconds of one call, from a block of `loops` calls."""
        if self.before is not None:
            self.before()
        return self.loop(loops) / loops


def statement(source: str, **names: object) -> Loop:
    """Return a loop over a Python statement that sees `names`.

    Each has byte code of its own: in shared code the interpreter would specialise its calls for whichever
    contestant came first. The garbage collector stays on, as it is for users.
    """
    return timeit.Timer(source, setup="import gc; gc.enable()", globals=dict(names)).timeit


def loops_to_fill(contestants: Sequence[Contestant], seconds: float) -> int:
    """Return how many calls of the fastest contestant fill a block of about `seconds`; one at least."""
    loops = 1
    while True:
        # The least of all: interruptions must not leave blocks of single calls, whose code is cold each time.
        least = min(contestant.block(loops) for contestant in contestants for _ in range(_TRIES))
        if least * loops >= seconds / 2 or loops >= 1 << 20:
            return max(1, round(seconds / least))
        loops *= 2


def interleave(
    contestants: Mapping[str, Contestant],
    *,
    rounds: int,
    loops: int,
    rng: random.Random,
    seconds: float = math.inf,
) -> dict[str, list[float]]:
    """Return the seconds per call of each contestant, one value a round.

    A round runs everybody once and then once more in the opposite order (A B B A), and the two are averaged: a
    steady drift cancels. The order is another in each round, so that nobody always follows the same other, whose
    threads may still be spinning. Values of one round belong together: compare them as pairs. After `seconds` no
    further round begins.
    """
    order = names = list(contestants)
    end = time.monotonic() + seconds
    values: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        # Two rounds in a row are each other's reverse, so that each of two contestants begins as often as the other.
        order = rng.sample(names, len(names)) if number % 2 == 0 else order[::-1]
        there = {name: contestants[name].block(loops) for name in order}
        back = {name: contestants[name].block(loops) for name in reversed(order)}
        for name in names:
            values[name].append((there[name] + back[name]) / 2)
        if time.monotonic() >= end:
            break
    return values
