"""When signatures were last called, as far as looking at their counts now and then can tell.

A call writes no time: that would cost what a hit must not cost. So whoever looks at the counts says when more calls
were found than the time before, which is as exact as the looks are frequent.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tensorplay.gemm import Signature
from tensorplay.runtime.slices import paced

__all__ = ["LastCalls"]


class LastCalls(NamedTuple):
    """What one look found.

    Attributes
    ----------
    calls : mapping of Signature to int
        How often each had been called by then.
    times : mapping of (str, str) to str
        When more calls were last found, of each that was looked for and has been called since the first look.
    """

    calls: Mapping[Signature, int]
    times: Mapping[tuple[str, str], str]

    def after(
        self,
        wanted: Iterable[tuple[str, str]],
        calls: Mapping[Signature, int],
        firsts: Mapping[tuple[str, str], str],
        now: str,
    ) -> "LastCalls":
        """Return what another look finds; of a single call its time is known, as that of the first."""
        times = {}
        for op, params in paced(wanted):
            signature = Signature(op, params)
            count = calls.get(signature, 0)
            if count != self.calls.get(signature, 0):
                first = firsts.get((op, params)) if count == 1 else None
                times[op, params] = first or now
            elif known := self.times.get((op, params)):
                times[op, params] = known
        return LastCalls(calls, times)
