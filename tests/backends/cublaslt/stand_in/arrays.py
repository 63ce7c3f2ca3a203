"""Drives arrays of ours on the stand-in driver; run by `test_array_memory.py`."""

import ctypes
import gc
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.cublaslt import compiling, memory
from tensorplay.cuda import DeviceArray, asarray, grouped_mm
from tensorplay.ops.device.array import new_array

# Still alive when the interpreter ends.
kept: list[Any] = []


def check_round_trip() -> None:
    """Copy arrays there and back, empty ones too."""
    for shape in ((), (0,), (3, 5), (2, 0, 3)):
        array = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
        put = asarray(array)
        assert put.pointer % 256 == 0
        np.testing.assert_array_equal(put.numpy(), array)
    assert not new_array((4,), "float64", 0, zero=True).numpy().any()


def check_life() -> None:
    """Give memory back with the last who refers to it, on any thread."""
    gc.collect()
    assert memory.live_bytes() == 0, memory.live_bytes()
    put = asarray(np.ones(1000, np.float32))
    assert memory.live_bytes() == 4000
    shown = put.__dlpack__()
    del put
    assert memory.live_bytes() == 4000
    del shown
    assert memory.live_bytes() == 0

    def work() -> None:
        for _ in range(50):
            assert asarray(np.ones(10, np.float64)).numpy().sum() == 10

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.live_bytes() == 0


def check_full(driver: ctypes.CDLL) -> None:
    """Say when memory is full, and leave nothing behind."""
    full = ctypes.c_int.in_dll(driver, "fake_full")
    full.value = 1
    with pytest.raises(MemoryError, match="out of memory"):
        asarray(np.ones(3, np.float32))
    full.value = 0
    assert memory.live_bytes() == 0


def check_groups(counts: ctypes.CDLL) -> None:
    """Multiply groups at once, from arrays to arrays."""
    called = ctypes.c_long.in_dll(counts, "fake_grouped")
    left = [asarray(np.full((rows, 8), 0.5, np.float32)) for rows in (1, 2, 3, 0, 5)]
    right = [asarray(np.full((8, 4), number, np.float32)) for number in range(5)]
    before = called.value
    for _ in range(2):
        for number, found in enumerate(grouped_mm(left, right)):
            assert found.shape == (left[number].shape[0], 4)
            assert (found.numpy() == 4 * number).all()
    assert called.value == before + 2
    left.clear()
    right.clear()


def check_buffer(put: DeviceArray, *, is_there: bool) -> None:
    """Show the memory to cuda.core, which keeps it, and cannot take it away."""
    buffer = put.buffer
    if not is_there:
        assert buffer is None
        return
    assert type(buffer).__module__.startswith("cuda.core")
    assert (int(buffer.handle), buffer.size) == (put.pointer, put.nbytes)
    assert put._memory._buffer.memory_resource.device_id == put.device
    buffer.close()
    np.testing.assert_array_equal(put.numpy(), np.arange(6, dtype=np.float32))
    buffer = put.buffer
    pointer = put.pointer
    del put
    gc.collect()
    assert memory.live_bytes() == 24
    assert ctypes.c_float.from_address(pointer + 20).value == 5
    del buffer
    gc.collect()


def main(folder: Path, way: str) -> None:
    """Load the stand-ins and check everything."""
    driver, _, cublas = (
        ctypes.CDLL(str(folder / name)) for name in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13")
    )
    setattr(compiling, "machine_code", lambda *_: b"code")  # noqa: B010 - it is no plain function
    if way == "without cuda.core":
        sys.modules["cuda.core"] = None  # type: ignore[assignment]  # as Python marks what cannot be imported
    check_round_trip()
    check_life()
    check_full(driver)
    check_buffer(asarray(np.arange(6, dtype=np.float32)), is_there=way == "with cuda.core")
    assert memory.live_bytes() == 0
    if way == "with cuda.core":
        # Which nvmath-python needs too.
        check_groups(cublas)
    kept.append(asarray(np.ones(5, np.float32)))
    kept.append(kept[0].buffer)
    # A cycle that only the end of the interpreter undoes.
    kept.append(kept)
    print("checked")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
