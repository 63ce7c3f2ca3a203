"""Drives the whole NVIDIA backend on the stand-in libraries; run by `test_stand_in.py` in a process of its own."""

import ctypes
import gc
import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.base import CandidateQuery
from tensorplay.backends.cublaslt import descriptors, graph, library, memory, nvrtc, stream
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.workspace import DEFAULT_BYTES
from tensorplay.errors import KernelUnavailableError, OperandError
from tensorplay.gemm import GemmProblem, dtype_of_name
from tensorplay.measure.budget import Budget
from tensorplay.measure.numerics import agree
from tensorplay.runtime.tuner import TuningRules, measure

TYPES = ("float32", "tf32", "float64", "float16", "bfloat16", "complex64", "complex128")
WRONG = "lt_id6_"


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
        plans = [backend.first_choice(problem), *backend.candidates(problem, CandidateQuery())]
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
        query=CandidateQuery(),
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


def check_refusals(backend: CublasLtBackend) -> None:
    """Refuse stale, foreign and hostile kernel ids with a reason."""
    rest = "stages1_splitk{split}_red1_swizzle0_custom0_inner0_cluster0"
    for kernel, reason in {
        f"lt_id99_tile1_{rest.format(split=1)}": "does not run here",
        f"lt_id1_tile601_{rest.format(split=1)}": "does not run here",
        f"lt_id1_tile1_{rest.format(split=100)}": "workspace",
        "host_numpy": "host",
        "nonsense": "no kernel id",
    }.items():
        with pytest.raises(KernelUnavailableError, match=reason):
            backend.rebuild(posed("float32"), kernel)
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

    assert ids(CandidateQuery()) == {"id2", "id3", "id4", "id6"}, "id5 needs 128 bytes of alignment"
    assert ids(CandidateQuery(), alignment=4) == {"id2", "id3", "id6"}
    assert ids(CandidateQuery(deterministic=True)) == {"id2", "id4"}
    assert ids(CandidateQuery(workspace_bytes=2 << 20)) == {"id2", "id3", "id4"}
    assert ids(CandidateQuery(), workspace_mib=0) == {"id2", "id4"}
    half = {plan.kernel.split("_")[1] for plan in backend.candidates(posed("float16"), CandidateQuery())}
    assert half == {"id2", "id3", "id4"}, "id6 rounds partial sums to the result's 16 bits"
    assert ids(CandidateQuery(sources=frozenset({"skinny"}))) == set()
    assert [plan.kernel.split("_")[1] for plan in backend.library_choices(posed("float32"))][:2] == ["id1", "id2"]


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
    # The stand-in driver runs no machine code.
    setattr(nvrtc, "compile_source", lambda _source, _capability: b"code")  # noqa: B010 - it is no plain function
    assert library.available() is None
    backend = CublasLtBackend()
    assert backend.current_device() == "0"
    assert dict(backend.validators("0"))["CUDA_DEVICE"] == "9.0:NVIDIA FAKE"
    assert not backend.is_capturing(0)
    for check in (check_values, check_offers, check_measurement, check_refusals, check_nothing_is_left):
        check(backend)
    print("checked")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
