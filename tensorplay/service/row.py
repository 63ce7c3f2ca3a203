"""A winner as lists show it: the parts of its signature that are filtered and sorted by."""

import math
import re
from typing import NamedTuple

from tensorplay.gemm import Signature
from tensorplay.gemm.signature import OP_PREFIX
from tensorplay.runtime.archive import Recorded
from tensorplay.service.identity import result_id

__all__ = ["Row", "gain_of", "row_of", "saved_of"]

# What a file says may be shorter than any time is; a rate by it would be no number.
_SHORTEST_MS = 1e-9
_PARAMS = re.compile(r"ta([NT])_m(\d+)_n(\d+)_k(\d+)_bias([01])_dev([^_]+)(.*)")


class Row(NamedTuple):
    """One winner; sizes are of the row-major (m, k) @ (k, n), the time is in milliseconds."""

    id: str
    op: str
    params: str
    kernel: str
    time_ms: float
    device: str
    origin: str
    pinned: bool
    dtype: str
    transposed: bool
    m: int
    n: int
    k: int
    bias: bool
    further: str

    @property
    def tflops(self) -> float | None:
        """Return the rate in 10^12 operations a second; None for a time that was not measured or a stack."""
        if not self.time_ms or "_batch" in self.further:
            return None
        factor = 8 if self.dtype.startswith("Complex") else 2
        rate = factor * self.m * self.n * self.k / (self.time_ms * 1e9) if self.time_ms > _SHORTEST_MS else 0.0
        return rate or None

    @property
    def signature(self) -> Signature:
        """Return the key of its problem."""
        return Signature(self.op, self.params)


def gain_of(time_ms: float, first_choice_ms: float | None) -> float | None:
    """Return how many times faster than the first choice a winner is; None when that is not known."""
    if first_choice_ms is None or time_ms <= _SHORTEST_MS:
        return None
    gain = first_choice_ms / time_ms
    return gain if math.isfinite(gain) else None


def saved_of(time_ms: float, first_choice_ms: float | None) -> float | None:
    """Return the milliseconds that a call takes less than with the first choice; None when that is not known."""
    if first_choice_ms is None or gain_of(time_ms, first_choice_ms) is None:
        return None
    return first_choice_ms - time_ms


def row_of(recorded: Recorded) -> Row:
    """Return the row of a winner; its signature is one, since nothing else is recorded."""
    op, params, kernel, time_ms, device, origin, pinned = recorded
    match = _PARAMS.fullmatch(params)
    if match is None:
        return Row(result_id(op, params), *recorded, op.removeprefix(OP_PREFIX), False, 0, 0, 0, False, "")  # noqa: FBT003 - fields
    ta, m, n, k, bias, _, further = match.groups()
    return Row(
        id=result_id(op, params),
        op=op,
        params=params,
        kernel=kernel,
        time_ms=time_ms,
        device=device,
        origin=origin,
        pinned=pinned,
        dtype=op.removeprefix(OP_PREFIX),
        transposed=ta == "T",
        m=int(m),
        n=int(n),
        k=int(k),
        bias=bias == "1",
        further=further,
    )
