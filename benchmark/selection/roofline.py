"""What the device can do at most: the bandwidth of a copy, the best of large square products, and what they imply."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.cuda_machine import clocks

from selection.shapes import SelectionShape

__all__ = ["Ceilings", "Roofline", "measured_ceilings", "moved_bytes", "roofline"]

_COPY_BYTES = 4 << 30
_SIDES = (4096, 6144, 8192)
_REPEATS = 7


class Ceilings(NamedTuple):
    """What was measured of the device.

    Attributes
    ----------
    copy_bytes_per_s : float
        Bytes read and written by a copy on the device, a second.
    flops_per_s : mapping of str to float
        Operations a second of the best large square product, by data type.
    sm_mhz : object
        The clock just after, as the driver tells it; None where it does not.
    """

    copy_bytes_per_s: float
    flops_per_s: Mapping[str, float]
    sm_mhz: object = None


class Roofline(NamedTuple):
    """The least time that a product can take, and which ceiling sets it: `bandwidth` or `arithmetic`."""

    us: float
    bound: str


def moved_bytes(shape: SelectionShape) -> int:
    """Return the bytes that a product must read and write, each once."""
    return shape.nbytes + (shape.problem.dtype.itemsize * shape.n if shape.bias else 0)


def roofline(shape: SelectionShape, ceilings: Ceilings) -> Roofline:
    """Return the least time of a product under the ceilings."""
    moving = 1e6 * moved_bytes(shape) / ceilings.copy_bytes_per_s
    computing = 1e6 * shape.problem.flops / ceilings.flops_per_s[shape.dtype]
    return Roofline(moving, "bandwidth") if moving >= computing else Roofline(computing, "arithmetic")


def measured_ceilings(dtypes: Sequence[str], *, quick: bool) -> Ceilings:
    """Return the ceilings of device 0 now, those of arithmetic for some data types only; takes seconds."""
    copied = _copy_bytes_per_s(_COPY_BYTES // 8 if quick else _COPY_BYTES)
    sides = _SIDES[:1] if quick else _SIDES
    flops = {dtype: max(_flops_per_s(dtype, side) for side in sides) for dtype in dict.fromkeys(dtypes)}
    return Ceilings(copied, flops, clocks().get("sm_mhz"))


def _copy_bytes_per_s(nbytes: int) -> float:
    import torch

    source = torch.empty(nbytes // 2, device="cuda", dtype=torch.uint8).fill_(3)
    target = torch.empty_like(source)
    return nbytes / _best_seconds(lambda: target.copy_(source))


def _flops_per_s(dtype: str, side: int) -> float:
    import torch

    left, right, _, out = SelectionShape(dtype, side, side, side).operands()
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    try:
        flops = 2 * float(side) ** 3
        return flops / _best_seconds(lambda: torch.mm(left, right.T, out=out))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def _best_seconds(call: Callable[[], object]) -> float:
    """Return the least time of a call that takes the device much longer than the host."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    call()
    for _ in range(_REPEATS):
        call()
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)) / 1e3)
    return min(times)
