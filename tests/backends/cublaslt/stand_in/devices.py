"""Two devices of one process share no handle, workspace, kernel or file; run by `test_stand_in.py`."""

import ctypes
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tensorplay.backends.base import Plan
from tensorplay.backends.cublaslt import compiling, library, nvrtc
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.classic_handle import classic_handles
from tensorplay.backends.cublaslt.device import current, device
from tensorplay.backends.cublaslt.handle import handle_of
from tensorplay.backends.cublaslt.launch import maker
from tensorplay.backends.cublaslt.spin import SOURCE
from tensorplay.backends.cublaslt.stream import private_stream
from tensorplay.backends.cublaslt.workspace import workspaces
from tensorplay.errors import KernelUnavailableError, OperandError
from tensorplay.extensions import extension
from tensorplay.gemm import GemmProblem, dtype_of_name, signature_of
from tensorplay.runtime.context import TuningContext

KERNELS = ("Default", "lt_id3_tile13_stages3_splitk2_red2_swizzle0_custom0_inner0_cluster0", "cublas")
WORKSPACE, CONTEXT = 2, 3
Logs = dict[str, Callable[[int, int], int]]


def posed(ordinal: int) -> GemmProblem:
    """Return the same problem on one of the devices."""
    dtype = dtype_of_name("float32")
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, device="0", m=5, n=7, k=9), device=str(ordinal))


def run(plan: Plan, stream: int, seed: int) -> int:
    """Run a plan, check its result, and return the result's address."""
    random = np.random.default_rng(seed)
    left, right = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((5, 9), (9, 7)))
    out = np.full((5, 7), np.nan, np.float32)
    plan.run(left.ctypes.data, right.ctypes.data, out.ctypes.data, 0, 0, 1.0, 0.0, stream)
    np.testing.assert_allclose(out, left @ right, atol=1e-5)
    if plan.launch is not None:
        out[...] = np.nan
        plan.launch(left.ctypes.data, right.ctypes.data, out.ctypes.data, stream)
        np.testing.assert_allclose(out, left @ right, atol=1e-5)
    return out.ctypes.data


def check_launches(backend: CublasLtBackend) -> None:
    """See that launches call what the binding calls, and that several devices have them where they are in C."""
    internal = import_module("nvmath.bindings._internal.cublasLt")
    assert library.library_function("cublasLtMatmul") == internal._inspect_function_pointer("__cublasLtMatmul")
    assert library.library_function("cublasLtNothing") == library.driver_function("cuNothing") == 0
    assert (maker() is None) == (extension("tensorplay.backends.cublaslt._launch") is None)
    launches = [backend.rebuild(posed(ordinal), KERNELS[1]).launch for ordinal in (0, 1)]
    assert [type(launch) for launch in launches] == [maker() or type(None)] * 2


def check_places(backend: CublasLtBackend, logs: Logs) -> None:
    """Run each kind of plan on each device, whichever is current, in memory of that device's own."""
    cuda = library.driver()
    with current(0):
        streams = [0, 1, int(cuda.cuStreamCreate(1)[1])]
    for kernel in KERNELS:
        log = logs["cublas" if kernel == "cublas" else "cublaslt"]
        for stream in streams:
            used = []
            for ordinal in (0, 1):
                plan = backend.rebuild(posed(ordinal), kernel)
                for elsewhere in (0, 1):
                    with current(elsewhere):
                        out = run(plan, stream, 1)
                        assert log(out, CONTEXT) == int(device(ordinal).context)
                        assert int(cuda.cuCtxGetCurrent()[1]) == int(device(elsewhere).context)
                out = run(plan, stream, 2)
                assert int(cuda.cuCtxGetCurrent()[1]) == 0, "a thread that had no context keeps none"
                used.append(log(out, WORKSPACE))
            assert used[0] != used[1] or used == [0, 0], (kernel, stream)


def check_nothing_is_shared() -> None:
    """Compare what is kept for each device."""
    assert handle_of(0) != handle_of(1)
    assert classic_handles(0) is not classic_handles(1)
    assert workspaces(0) is not workspaces(1)
    assert private_stream(0) != private_stream(1)
    spins = [nvrtc.kernel(ordinal, SOURCE, "spin", (ctypes.c_longlong,)) for ordinal in (0, 1)]
    assert int(spins[0]._function) != int(spins[1]._function)
    with pytest.raises(OperandError, match="device 2; visible: 2"):
        handle_of(2)


def check_captures(backend: CublasLtBackend, fake_capture: Callable[[int, int], None]) -> None:
    """See a capture on the device that is asked about, whichever is current, and leave the current one as it was."""
    cuda = library.driver()
    for captured in (0, 1):
        fake_capture(captured, 1)
        for asked in (0, 1):
            for stream in (None, 0, 1):
                assert backend.is_capturing(stream, str(asked)) == (asked == captured)
                assert int(cuda.cuCtxGetCurrent()[1]) == 0
                for elsewhere in (0, 1):
                    with current(elsewhere):
                        assert backend.is_capturing(stream, str(asked)) == (asked == captured)
                        assert backend.is_capturing(stream) == (elsewhere == captured)
                        assert int(cuda.cuCtxGetCurrent()[1]) == int(device(elsewhere).context)
        fake_capture(captured, 0)


def check_overrides(backend: CublasLtBackend, folder: Path) -> None:
    """Record a kernel for a device that is not the current one, and refuse one for a device that is not there."""
    context = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=folder, backends={})
    problem = posed(1)
    with current(0):
        context.override(*signature_of(problem), KERNELS[1])
        plan = context.resolve(problem, backend, None).plan
        assert plan is not None and plan.kernel == KERNELS[1]
        with pytest.raises(KernelUnavailableError, match="device 7 is not in this process"):
            context.override(*signature_of(posed(7)), KERNELS[1])
    context.close()
    assert KERNELS[1] in (folder / "tunableop_results1.csv").read_text()
    assert not (folder / "tunableop_results0.csv").exists()


def check_files(backend: CublasLtBackend, folder: Path) -> None:
    """Measure on both, and find each winner in the file of its own device."""
    environ = {
        "TP_TUNABLEOP_ENABLED": "1",
        "TP_TUNABLEOP_CANDIDATES": "heuristic",
        "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "3",
        "TP_TUNABLEOP_ROTATING_BUFFER_SIZE": "0",
    }
    context = TuningContext(environ=environ, directory=folder, backends={"0": backend, "1": backend})
    for ordinal in (0, 1):
        assert context.resolve(posed(ordinal), backend, None).plan is not None
    context.close()
    for ordinal in (0, 1):
        lines = (folder / f"tunableop_results{ordinal}.csv").read_text().splitlines()
        winners = [line for line in lines if not line.startswith("Validator")]
        assert len(winners) == 1 and f"_dev{ordinal}," in winners[0], winners


def check_threads(backend: CublasLtBackend) -> None:
    """Multiply on both devices at once; the stand-in refuses a handle in another device's context."""
    done: list[int] = []

    def work(ordinal: int) -> None:
        for turn in range(150):
            run(backend.rebuild(posed(ordinal), KERNELS[turn % len(KERNELS)]), 0, turn)
        done.append(ordinal)

    threads = [threading.Thread(target=work, args=(number % 2,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 0, 1, 1]


def main(folder: Path) -> None:
    """Load the stand-ins and check everything."""
    files = {"driver": "libcuda.so.1", "cublaslt": "libcublasLt.so.13", "cublas": "libcublas.so.13"}
    loaded = {name: ctypes.CDLL(str(folder / file)) for name, file in files.items()}
    logs: Logs = {}
    for name in ("cublaslt", "cublas"):
        loaded[name].fake_call.argtypes = [ctypes.c_uint64, ctypes.c_int]
        loaded[name].fake_call.restype = ctypes.c_uint64
        logs[name] = loaded[name].fake_call
    setattr(compiling, "machine_code", lambda *_: b"code")  # noqa: B010 - it is no plain function
    backend = CublasLtBackend()
    check_launches(backend)
    check_places(backend, logs)
    check_nothing_is_shared()
    check_threads(backend)
    check_files(backend, folder)
    check_captures(backend, loaded["driver"].fake_capture)
    (folder / "overrides").mkdir()
    check_overrides(backend, folder / "overrides")
    print("checked")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
