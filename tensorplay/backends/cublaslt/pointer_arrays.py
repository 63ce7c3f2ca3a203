"""Lists of addresses in device memory, as the library's calls on several products read them.

They are written by a kernel of ours that is given them as its argument: the driver has copied that when the launch
returns, so no host memory has to outlive it, and the write is ordered on the stream behind the calls that read what
lay there before. A list that was written is used again as long as it lies there.
"""

import struct
from collections import OrderedDict
from ctypes import Structure, c_int, c_uint64, c_void_p

from tensorplay.backends.cublaslt.address_ring import Addresses, AddressRing
from tensorplay.backends.cublaslt.memory import DeviceBuffer
from tensorplay.backends.cublaslt.nvrtc import kernel

__all__ = ["MOST_ADDRESSES", "SOURCE", "PointerArrays"]

MOST_ADDRESSES = 8192
"""How many a stream's memory has room for: 64 KiB."""

_MOST_STREAMS = 64
_ITEM = 8
# With the two other arguments it stays within the 4096 bytes that every launch may have.
_BLOCK = 504

SOURCE = rf"""
struct block {{ unsigned long long address[{_BLOCK}]; }};

extern "C" __global__ void write_addresses(unsigned long long* out, int count, block given)
{{
    if (threadIdx.x < count) out[threadIdx.x] = given.address[threadIdx.x];
}}
"""


class _Block(Structure):
    _fields_ = [("address", c_uint64 * _BLOCK)]


class PointerArrays:
    """The lists of one device; the device's context must be current.

    Each user, a handle of the library, has memory of its own for each of its streams, since only calls on one stream
    are ordered, and only one call at a time uses a handle. The least recently used memory is given back when there
    is much. A stream that was destroyed keeps its number until its work is done, so a new one of that number finds
    the memory free.

    Not safe in several threads at once, except for different users.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._writer = kernel(ordinal, SOURCE, "write_addresses", (c_void_p, c_int, None))
        self._rings: OrderedDict[tuple[int, int], tuple[DeviceBuffer, AddressRing]] = OrderedDict()

    def address(self, user: int, stream: int, addresses: Addresses) -> int:
        """Return where a list lies in device memory, for work that is enqueued on the stream by the same call.

        Raises
        ------
        MemoryError
            When the device's memory is full.
        LaunchError
            When the driver refuses to write.
        """
        buffer, ring = self._ring((user, stream))
        found = ring.find(addresses)
        if found is None:
            found = ring.make_room(len(addresses))
            self._write(buffer.address + _ITEM * found, addresses, stream)
            ring.lay(addresses)
        return buffer.address + _ITEM * found

    def _ring(self, key: tuple[int, int]) -> tuple[DeviceBuffer, AddressRing]:
        try:
            # First of all: a signal handler that comes here too must not give this memory back.
            self._rings.move_to_end(key)
        except KeyError:
            if len(self._rings) >= _MOST_STREAMS:
                # Waits for the device, and so for whoever still reads it.
                self._rings.popitem(last=False)[1][0].free()
            self._rings[key] = (DeviceBuffer(self._ordinal, _ITEM * MOST_ADDRESSES), AddressRing(MOST_ADDRESSES))
        return self._rings[key]

    def _write(self, place: int, addresses: Addresses, stream: int) -> None:
        for first in range(0, len(addresses), _BLOCK):
            part = addresses[first : first + _BLOCK]
            block = _Block()
            struct.pack_into(f"={len(part)}Q", block, 0, *part)
            self._writer.launch((1, 1, 1), (_BLOCK, 1, 1), stream, place + _ITEM * first, len(part), block)
