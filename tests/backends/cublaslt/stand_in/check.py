"""Drives the whole NVIDIA backend on the stand-in libraries; run by `test_stand_in.py` in a process of its own."""

import ctypes
import gc
import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt import compiling, descriptors, graph, library, memory, stream
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES, workspaces
from tensorplay.errors import KernelUnavailableError, MeasurementError, OperandError
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.measure.budget import Budget
from tensorplay.measure.numerics import agree
from tensorplay.runtime.tuner import TuningRules, measure

TYPES = ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128")
WRONG = "lt_id6_"
NOT_SUPPORTED, FAILED = 15, 14
# Where the stand-in logs the mode of a call, and the mode in which parts of sums are not rounded.
MODE, STRICT = 4, 16
LT = CandidateQuery(sources=frozenset({"cublaslt"}))
LIBRARIES = CandidateQuery(sources=frozenset({"cublaslt", "cublas"}))


def posed(name: str, **further: Any) -> GemmProblem:
    """Return a small problem."""
    dtype = dtype_of_name(name)
    assert dtype is not None
    return replace(GemmProblem(dtype=dtype, device="0", m=5, n=7, k=9), **further)


def problems() -> Iterator[GemmProblem]:
    """Yield every combination of transposes, epilogue, addend, padding and batch."""
    switches = itertools.product((False, True), repeat=4)
    for name, (right, left, bias, accumulate) in itertools.product(TYPES, list(switches)):
        for activation, padding, batch in itertools.product(("none", "relu", "gelu"), (0, 3), (1, 3)):
            if name.startswith("complex") and (bias or activation != "none"):
                continue
            plain = posed(
                name,
                transpose_right=right,
                transpose_left=left,
                bias=bias,
                accumulate=accumulate,
                activation=activation,
                batch=batch,
            )
            if padding:
                columns = plain.left_columns + padding, plain.right_columns + padding, plain.n + padding
                plain = replace(plain, ld_left=columns[0], ld_right=columns[1], ld_out=columns[2])
            yield plain


def check_values(backend: CublasLtBackend) -> None:
    """Compare every plan's result with float64, and each rebuilt plan's with the first's bits."""
    for problem in problems():
        plans = [backend.first_choice(problem), *backend.candidates(problem, LIBRARIES)]
        is_plain = not problem.bias and problem.activation == "none"
        assert (plans[-1].kernel == "cublas") == is_plain, plans[-1].kernel
        if not problem.accumulate and not problem.bias:
            plans.append(backend.fixed_dispatch(problem))
        with backend.open_trial(problem, rotating_bytes=0) as trial:
            for plan in plans:
                found = trial.output(plan)
                exact = trial.reference()
                verdict = agree(found, exact, trial.reference, dtype=problem.dtype, k=problem.k)
                assert verdict.ok != plan.kernel.startswith(WRONG), (problem, plan.kernel, verdict)
                if plan.kernel != "Default":
                    assert np.array_equal(trial.output(backend.rebuild(problem, plan.kernel)), found), plan.kernel


def check_measurement(backend: CublasLtBackend) -> None:
    """Measure one problem: the wrong kernel takes no part, and nothing is left afterwards."""
    rules = TuningRules(
        query=LIBRARIES,
        budget=Budget(max_duration_ms=3, max_samples=12, warmup_duration_ms=0, warmup_samples=0),
        min_gain=0.02,
        check=True,
        tolerance=None,
        rotating_bytes=4000,
    )
    found = measure(backend, posed("float32", m=16, n=16, k=16, bias=True), rules)
    candidates: Any = found.report.to_dict()["candidates"]
    dropped = {each["kernel"]: each["dropped"] for each in candidates}
    assert found.entry.time_ms > 0 and len(dropped) == 5, found
    wrong = next(reason for kernel, reason in dropped.items() if kernel.startswith(WRONG))
    assert "wrong result" in wrong, wrong
    problem = posed("float32")
    # As a signal handler that multiplies would: the first one may be in the middle of a capture.
    already = pytest.raises(MeasurementError, match="is measuring on device 0 already")
    with backend.open_trial(problem, rotating_bytes=0), already:
        backend.open_trial(problem, rotating_bytes=0).__enter__()


def check_refusals(backend: CublasLtBackend) -> None:
    """Refuse stale, foreign and hostile kernel ids with a reason."""
    rest = "stages1_splitk{split}_red1_swizzle0_custom0_inner0_cluster0"
    for kernel, reason in {
        f"lt_id99_tile1_{rest.format(split=1)}": "does not run here",
        f"lt_id1_tile601_{rest.format(split=1)}": "does not run here",
        f"lt_id1_tile1_{rest.format(split=100)}": "workspace",
        "host_numpy": "host",
        "nonsense": "no kernel id",
        "first": "no kernel id",
        "cublas_algo3": "no kernel of classic cuBLAS",
        "skinny_tile8": "skinny",
    }.items():
        with pytest.raises(KernelUnavailableError, match=reason):
            backend.rebuild(posed("float32"), kernel)
    for further, reason in (
        ({"bias": True}, "bias"),
        ({"activation": "relu"}, "activation"),
        ({"workspace_mib": 0}, "16384 bytes of workspace"),
        ({"out_dtype": dtype_of_name("float64")}, "makes no float64"),
    ):
        with pytest.raises(KernelUnavailableError, match=reason):
            backend.rebuild(posed("float32", **further), "cublas")
    for problem in (
        posed("float32", alignment=2),
        posed("float8_e5m2"),
        posed("float32", workspace_mib=0, alignment=1),
    ):
        try:
            backend.first_choice(problem)
        except OperandError:
            continue
        raise AssertionError(f"{problem} was accepted")


def check_offers(backend: CublasLtBackend) -> None:
    """Offer what alignment, workspace, determinism and sources allow."""

    def ids(query: CandidateQuery, **further: Any) -> set[str]:
        plans = backend.candidates(posed("float32", **further), query)
        return {plan.kernel.split("_")[1] for plan in plans}

    def sources(query: CandidateQuery, **further: Any) -> set[str]:
        plans = backend.candidates(posed("float32", **further), query)
        return {plan.kernel.split("_")[0] for plan in plans}

    assert sources(CandidateQuery()) == {"lt", "cublas", "skinny"}
    assert sources(CandidateQuery(breadth="heuristic")) == {"lt"}
    assert sources(CandidateQuery(deterministic=True)) == {"lt", "skinny"}
    assert sources(CandidateQuery(workspace_bytes=0)) == {"lt", "skinny"}
    assert sources(CandidateQuery(), workspace_mib=0) == {"lt", "skinny"}
    assert sources(CandidateQuery(sources=frozenset({"cublas"}))) == {"cublas"}
    assert sources(CandidateQuery(sources=frozenset({"numpy"}))) == set()
    assert sources(CandidateQuery(), bias=True, m=32, n=32) == {"lt"}
    assert ids(LT) == {"id2", "id3", "id4", "id6"}, "id5 needs 128 bytes of alignment"
    assert ids(LT, alignment=4) == {"id2", "id3", "id6"}
    assert ids(replace(LT, deterministic=True)) == {"id2", "id4"}
    assert ids(replace(LT, workspace_bytes=2 << 20)) == {"id2", "id3", "id4"}
    assert ids(LT, workspace_mib=0) == {"id2", "id4"}
    half = {plan.kernel.split("_")[1] for plan in backend.candidates(posed("float16"), LT)}
    assert half == {"id2", "id3", "id4"}, "id6 rounds partial sums to the result's 16 bits"
    assert [plan.kernel.split("_")[1] for plan in backend.library_choices(posed("float32"))][:2] == ["id1", "id2"]


def check_first_choices(_backend: CublasLtBackend) -> None:
    """Name the classic call where cuBLASLt has nothing, and offer it where cuBLASLt does not answer."""
    classic = replace(LT, sources=frozenset({"cublas"}))
    for status, first, offered in ((NOT_SUPPORTED, "cublas", []), (FAILED, "Default", ["cublas"])):
        os.environ["FAKE_HEUR"] = str(status)
        backend = CublasLtBackend()
        try:
            assert backend.first_choice(posed("float32")).kernel == first
            assert [plan.kernel for plan in backend.candidates(posed("float32"), classic)] == offered
            assert not list(backend.candidates(posed("float32"), LT))
            assert len(backend.library_choices(posed("float32"))) == 1
            assert backend.first_choice(posed("float32", bias=True)).kernel == "Default"
        finally:
            del os.environ["FAKE_HEUR"]


def check_deterministic_choice(_backend: CublasLtBackend) -> None:
    """Put the library's first answer that splits no sum in the place of one that does, and only of such a one."""
    backend = CublasLtBackend()
    assert backend.deterministic_choice(posed("float32")) is backend.first_choice(posed("float32"))
    os.environ["FAKE_SPLITS"] = "1"
    try:
        backend = CublasLtBackend()
        first, kept = backend.first_choice(posed("float32")), backend.deterministic_choice(posed("float32"))
        assert (first.kernel[:6], first.is_deterministic) == ("lt_id3", False)
        assert (kept.kernel[:6], kept.is_deterministic) == ("lt_id1", True)
        assert backend.deterministic_choice(posed("float32")) is kept
        os.environ["FAKE_HEUR"] = str(FAILED)
        failing = CublasLtBackend()
        assert failing.deterministic_choice(posed("float32")).kernel == "Default"
        # What did not answer, as under a capture, may answer later.
        del os.environ["FAKE_HEUR"]
        assert failing.deterministic_choice(posed("float32")).kernel == kept.kernel
    finally:
        os.environ.pop("FAKE_HEUR", None)
        del os.environ["FAKE_SPLITS"]


def check_strictness(backend: CublasLtBackend) -> None:
    """Let only fixed dispatch round parts of a sum, as array libraries do, whichever of both ran before."""
    problem, log = posed("float16", m=17, n=17), ctypes.CDLL("libcublas.so.13").fake_call
    log.argtypes, log.restype = [ctypes.c_uint64, ctypes.c_int], ctypes.c_uint64
    operands = [np.zeros(shape, np.float16) for shape in ((17, 9), (9, 17), (17, 17))]
    addresses = [operand.ctypes.data for operand in operands]
    for plan, mode in 2 * [(backend.rebuild(problem, "cublas"), STRICT), (backend.fixed_dispatch(problem), 0)]:
        plan.run(*addresses)
        assert log(addresses[2], MODE) == mode, plan.kernel
    # What these products have run on is no trial's, which would give it back.
    buffers = workspaces(0)
    buffers.take_back(0)


def check_workspaces(_backend: CublasLtBackend) -> None:
    """Give streams memory of their own, the spare one under a capture, and give back what was lent with what it was."""
    cuda, before = library.driver(), memory.live_bytes()
    buffers = workspaces(0)
    buffers.prepare()
    first, second, third = (int(cuda.cuStreamCreate(1)[1]) for _ in range(3))
    for each in (first, second, third):
        buffers.lend(each)
    small, large = buffers.address(first, 16), buffers.address(first, DEFAULT_BYTES + 1)
    assert small != large == buffers.address(first, 1)
    for each in (second, third):
        cuda.cuStreamBeginCapture(each, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    with pytest.raises(KernelUnavailableError, match="before capturing"):
        buffers.address(second, DEFAULT_BYTES + 1)
    assert buffers.address(second, DEFAULT_BYTES) not in {small, large}
    with pytest.raises(KernelUnavailableError, match="before capturing"):
        buffers.address(third, 16)
    for each in (second, third):
        cuda.cuStreamEndCapture(each)
    for each in (first, second, third):
        buffers.take_back(each)
    buffers.prepare()
    assert memory.live_bytes() == max(before, DEFAULT_BYTES)


def check_nothing_is_left(backend: CublasLtBackend) -> None:
    """Find no descriptor, event, graph or memory that nobody needs; the spare workspace stays."""
    backend.forget_plans()
    gc.collect()
    assert not descriptors.live_descriptors(), descriptors.live_descriptors()
    assert (stream.live_events(), graph.live_graphs()) == (0, 0)
    assert memory.live_bytes() == DEFAULT_BYTES, memory.live_bytes()


def main(folder: Path) -> None:
    """Load the stand-ins and check everything."""
    for name in ("libcuda.so.1", "libcublasLt.so.13", "libcublas.so.13"):
        ctypes.CDLL(str(folder / name))
    # The stand-in driver runs no machine code, so none is needed, nor a compiler to be installed.
    setattr(compiling, "machine_code", lambda *_: b"code")  # noqa: B010 - it is no plain function
    assert library.available() is None
    backend = CublasLtBackend()
    assert backend.current_device() == "0"
    assert dict(backend.validators("0"))["CUDA_DEVICE"] == "9.0:NVIDIA FAKE"
    assert not backend.is_capturing(0)
    for check in (
        check_values,
        check_offers,
        check_first_choices,
        check_deterministic_choice,
        check_strictness,
        check_workspaces,
        check_measurement,
        check_refusals,
        check_nothing_is_left,
    ):
        check(backend)
    print("checked")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
