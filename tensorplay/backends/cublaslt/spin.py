"""The delay kernel: keeps a stream busy while the host enqueues what is to be timed."""

from ctypes import c_longlong

from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.nvrtc import kernel

__all__ = ["SOURCE", "spin", "warm_clocks"]

# The cycle limit ends it even if the nanosecond timer stood still; no GPU runs at 4 GHz.
SOURCE = r"""
extern "C" __global__ void spin(long long nanoseconds)
{
    unsigned long long start, now;
    const long long cycles = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while ((long long)(now - start) < nanoseconds && clock64() - cycles < 4 * nanoseconds);
}
"""


def spin(ordinal: int, stream: int, nanoseconds: int) -> None:
    """Enqueue a kernel that takes about so long; the device's context must be current."""
    kernel(ordinal, SOURCE, "spin", (c_longlong,)).launch((1, 1, 1), (1, 1, 1), stream, nanoseconds)


def warm_clocks(ordinal: int, stream: int, nanoseconds: int) -> None:
    """Enqueue work for every multiprocessor for about so long: an idle device runs at a fraction of its clock."""
    blocks = 2 * device(ordinal).multiprocessors
    kernel(ordinal, SOURCE, "spin", (c_longlong,)).launch((blocks, 1, 1), (256, 1, 1), stream, nanoseconds)
