"""About how long a configuration takes: a small model, fitted to what an H200 took (`tests/data/skinny_h200.json`).

It knows what there is to read, the blocks that are left over in the last wave, the bytes that the blocks of one
multiprocessor have under way at once, and that each turn of a warp's loop has a latency of its own. All constants were
fitted together to the times of some 1,600 configurations of 18 shapes, so that the fastest come first.
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
_ALONE, _FURTHER_WAVES, _WAVE_US, _SPLIT_US, _MEETING_US = 0.31, 0.04, 1.4, 1.95, 0.007


class _Kind(NamedTuple):
    """What is particular to a value of `mma`.

    Attributes
    ----------
    begin_us : float
        Until the first bytes are there, and after the last.
    in_flight, scarcity : float
        Bytes that a multiprocessor should have under way, and what is lost with fewer.
    turn_us : float
        Of a warp's loop.
    idle_stages : float
        Of those that a warp has, on average not under way.
    adding : float
        Time for adding up, as a share of that for reading.
    again : float
        Price of reading x once for each tile, a column.
    """

    begin_us: float
    in_flight: float
    scarcity: float
    turn_us: float
    idle_stages: float
    adding: float
    again: float


_KINDS = (
    _Kind(begin_us=1.3, in_flight=131e3, scarcity=0.096, turn_us=0.1, idle_stages=0.0, adding=0.0, again=0.15),
    _Kind(begin_us=1.6, in_flight=21e3, scarcity=0.24, turn_us=0.125, idle_stages=0.1, adding=0.14, again=0.1),
    _Kind(begin_us=1.7, in_flight=133e3, scarcity=0.035, turn_us=0.029, idle_stages=1.0, adding=0.063, again=0.03),
)
# Of a lone stage something is under way until it is waited for.
_LEAST_STAGES = 0.3


def geometry_cost(shape: Shape, tile: int, split: int, multiprocessors: int) -> float:
    """Return what is lost by the blocks alone, in units of reading the weight at full rate."""
    blocks = -(-shape.rows // tile) * split
    uneven = -(-blocks // multiprocessors) * multiprocessors / blocks - 1.0
    padding = -(-shape.rows // tile) * tile / shape.rows - 1.0
    least = shape.weight_bytes / _RATE + 1.0
    return 0.4 * uneven + padding + _split_us(split) / least + 0.1 * shape.columns / tile


def estimate(configuration: Configuration, shape: Shape, multiprocessors: int) -> float:
    """Return about how long it takes, in microseconds; infinite where not one block fits."""
    kind = _KINDS[configuration.mma]
    tiles = -(-shape.rows // configuration.tile)
    blocks = tiles * configuration.split
    resident = _resident(configuration, shape)
    if resident == 0:
        return float("inf")
    each = -(-blocks // multiprocessors)
    chunk = configuration.chunk(shape)
    # While a stage of a ring is added up it brings nothing.
    stages = max(_LEAST_STAGES, configuration.stages - kind.idle_stages)
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
    # Rows beyond the last are read too.
    reading *= tiles * configuration.tile / shape.rows
    reading += kind.adding + kind.again * shape.columns / configuration.tile
    turns = -(-shape.depth // (chunk * configuration.depth_warps * configuration.split))
    meeting = _MEETING_US * configuration.depth_warps + _split_us(configuration.split)
    once = kind.begin_us + meeting + _WAVE_US * (whole_waves - 1.0)
    return shape.weight_bytes / _RATE * reading + once + kind.turn_us * turns


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
