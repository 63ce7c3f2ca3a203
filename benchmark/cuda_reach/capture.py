"""Graph capture: misses and hits under it are right, measure nothing, and are bit-identical to what runs eagerly."""

import tempfile
from collections.abc import Callable
from typing import Any

from harness.cuda_shapes import CudaOperands, CudaShape, product_of
from harness.result import Figure, Goal, Result

from cuda_reach.setting import context_of, kernel_run, prime, run_under
from tensorplay.runtime.process import use_context

SHAPES = (
    CudaShape("float32", 96, 1024, 768),
    CudaShape("float32", 16, 1024, 4096, bias=True),
    CudaShape("float16", 512, 2304, 768, bias=True),
    CudaShape("float64", 200, 120, 300),
)
MODES = ("global", "thread_local", "relaxed")
REPLAYS = 10


def measure(quick: bool) -> Result:
    """Capture every shape in every mode, once as a miss, once as a hit, once with the feature off."""
    modes = MODES[:1] if quick else MODES
    rows = [_tried_safely(shape, mode, kind) for kind in ("miss", "hit", "off") for mode in modes for shape in SHAPES]
    return Result(
        name="capture",
        question="Does a captured product measure nothing, and give the bits that eager reruns give?",
        figures=[
            Figure("captures", len(rows), goal=Goal(3 * len(SHAPES) * len(modes), at_least=True)),
            Figure("wrong results", sum(not row["right"] for row in rows), goal=Goal(0)),
            Figure("results of other bits", sum(not row["same bits"] for row in rows), goal=Goal(0)),
            Figure("measured under capture or after", sum(int(row["measured"]) for row in rows), goal=Goal(0)),
            Figure("misses that were not pinned", sum(not row["as expected"] for row in rows), goal=Goal(0)),
        ],
        settings={"replays of each graph": REPLAYS},
        rows=rows,
    )


def _tried_safely(shape: CudaShape, mode: str, kind: str) -> dict[str, Any]:
    """Return the row of one capture; where it raises, the error stands for its kernel and nothing was as it should."""
    try:
        return _tried(shape, mode, kind)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other captures say the rest
        about = {"kind": kind, "mode": mode, "shape": str(shape), "right": False, "same bits": False, "measured": 0}
        return about | {"as expected": False, "kernel": f"{type(error).__name__}: {error}"}


def _tried(shape: CudaShape, mode: str, kind: str) -> dict[str, Any]:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        context = context_of(folder, enabled=kind != "off")
        prime(context)
        operands = shape.operands()
        call, out = product_of(operands), operands.out
        expected: list[Any] = []
        if kind == "hit":
            run_under(context, call)
            expected.append(out.clone())
        before = context.stats()
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with use_context(context), torch.cuda.graph(graph, capture_error_mode=mode):
            call()
        measured = context.stats()["measured"] - before["measured"]
        expected += [_left_by(graph.replay, out) for _ in range(REPLAYS)]
        # What is selected in the process by an eager call may be another kernel than what a capture ran.
        if kind != "off":
            expected += [_left_by(lambda: run_under(context, call), out) for _ in range(2)]
            expected.append(_left_by(graph.replay, out))
        after = context.stats()
        pinned = after["pinned"] - before["pinned"]
        return {
            "kind": kind,
            "mode": mode,
            "shape": str(shape),
            "right": _is_right(operands, expected[0]),
            "same bits": all(torch.equal(expected[0], each) for each in expected[1:]),
            "measured": measured + max(0, after["measured"] - before["measured"] - measured),
            "as expected": pinned == (1 if kind == "miss" else 0),
            "kernel": kernel_run(context, shape),
        }


def _left_by(run: Callable[[], Any], out: Any) -> Any:
    import torch

    out.zero_()
    run()
    torch.cuda.synchronize()
    return out.clone()


def _is_right(operands: CudaOperands, found: Any) -> bool:
    left, right, bias, _ = operands
    turned = right if bias is None else right.T
    exact = left.double() @ turned.double()
    magnitude = left.double().abs() @ turned.double().abs()
    if bias is not None:
        exact += bias.double()
    # Rounding of the sums, and of results in half precision.
    roundoff = {"torch.float64": 2.0**-53, "torch.float16": 2.0**-24}.get(str(found.dtype), 2.0**-24)
    last = 2.0**-10 if str(found.dtype) == "torch.float16" else 0.0
    allowed = 8 * left.shape[1] ** 0.5 * roundoff * magnitude + last * (exact.abs() + 1)
    return bool(((found.double() - exact).abs() <= allowed).all())
