"""About how long a configuration takes: a small model, fitted to what an H200 took.

It knows what there is to read, the blocks that are left over in the last wave, the blocks of one multiprocessor that
have bytes under way at once, and that each turn of a warp's loop has a latency of its own.
"""

from typing import NamedTuple

from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.shape import Shape

__all__ = ["estimate", "geometry_cost"]

# What a multiprocessor can hold; a block has further shared memory, and a thread further registers, that we do not see.
_MOST_THREADS, _REGISTERS, _MOST_BLOCKS, _SHARED_BYTES = 2048, 65536, 32, 228 << 10
_FURTHER_SHARED, _FURTHER_REGISTERS, _THREAD_REGISTERS = 1024, 34, 255
_RATE = 4.25e6
"""Bytes of the weight in a microsecond."""
_ALONE, _FURTHER_WAVES, _WAVE_US, _SPLIT_US, _MEETING_US = 0.6, 0.19, 1.2, 1.4, 0.02


class _Kind(NamedTuple):
    """What is particular to a value of `mma`.

    Attributes
    ----------
    in_flight : float
        Bytes that a multiprocessor must have under way, and what is lost with fewer.
    turn_us : float
        Of a warp's loop.
    idle_stages : float
        Of those that a warp has, on average not under way.
    adding : float
        Time per column, or for all, as a share of that for reading.
    again : float
        Price of reading x once for each tile.
    """

    in_flight: float
    scarcity: float
    turn_us: float
    idle_stages: float
    adding: float
    again: float


_KINDS = (
    _Kind(in_flight=7700.0, scarcity=3.3, turn_us=0.25, idle_stages=0.0, adding=0.1, again=0.0),
    _Kind(in_flight=7700.0, scarcity=3.3, turn_us=0.16, idle_stages=0.0, adding=0.65, again=0.0),
    _Kind(in_flight=98304.0, scarcity=0.15, turn_us=0.06, idle_stages=0.5, adding=0.0, again=0.4),
)


def geometry_cost(shape: Shape, tile: int, split: int, multiprocessors: int) -> float:
    """Return what is lost by the blocks alone, in units of reading the weight at full rate."""
    blocks = -(-shape.rows // tile) * split
    uneven = -(-blocks // multiprocessors) * multiprocessors / blocks - 1.0
    padding = -(-shape.rows // tile) * tile / shape.rows - 1.0
    least = shape.weight_bytes / _RATE + 1.0
    return 0.4 * uneven + padding + _split_us(split) / least + 0.1 * shape.columns / tile


def estimate(configuration: Configuration, shape: Shape, multiprocessors: int) -> float:
    """Return about how long it takes, in microseconds; infinite where not one block fits."""
    kind, columns = _KINDS[configuration.mma], shape.columns
    blocks = -(-shape.rows // configuration.tile) * configuration.split
    resident = _resident(configuration, shape)
    if resident == 0:
        return float("inf")
    each = -(-blocks // multiprocessors)
    chunk = configuration.chunk(shape)
    # While a stage of a ring is added up it brings nothing.
    stages = configuration.stages - kind.idle_stages
    flying = configuration.warps * stages * configuration.rows * chunk * shape.dtype.itemsize
    # No more than there is to read.
    needed = min(kind.in_flight, shape.weight_bytes / multiprocessors)
    reading = 1.0 + kind.scarcity * max(0.0, needed / (min(resident, each) * flying) - 1.0)
    waves = blocks / (multiprocessors * resident)
    whole_waves = max(1.0, -(-waves // 1.0))
    if waves <= 1.0:
        reading *= 1.0 + _ALONE * (each * multiprocessors / blocks - 1.0)
    else:
        reading *= 1.0 + _FURTHER_WAVES * (whole_waves / waves - 1.0)
    turns = -(-shape.depth // (chunk * configuration.depth_warps * configuration.split))
    reading += kind.adding * (1 if configuration.mma else columns) + kind.again * columns / configuration.tile
    meeting = _MEETING_US * configuration.depth_warps + _split_us(configuration.split)
    return shape.weight_bytes / _RATE * reading + meeting + _WAVE_US * (whole_waves - 1.0) + kind.turn_us * turns


def _split_us(split: int) -> float:
    return _SPLIT_US * (split.bit_length() - 1)


def _resident(configuration: Configuration, shape: Shape) -> int:
    """Return how many blocks a multiprocessor holds at once."""
    registers = min(_THREAD_REGISTERS, configuration.registers(shape) + _FURTHER_REGISTERS)
    return min(
        _MOST_THREADS // configuration.threads,
        _REGISTERS // (registers * configuration.threads),
        _SHARED_BYTES // (configuration.shared_bytes(shape) + _FURTHER_SHARED),
        _MOST_BLOCKS,
    )
