"""Memory and handles after tuning 300 small shapes."""

import gc
import tempfile
import time
from typing import Any

from harness.cuda_shapes import CudaShape, product_of
from harness.result import Figure, Goal, Result

from cuda_reach.setting import context_of, prime, run_under
from tensorplay.backends.cublaslt import descriptors, graph, memory, stream
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.device import device
from tensorplay.runtime.context import TuningContext

_MIB = 1 << 20
# Times do not matter here; short budgets leave the same things to be given back.
SETTINGS = {"MAX_TUNING_DURATION_MS": "2", "MAX_TUNING_SAMPLES": "8"}


def measure(quick: bool) -> Result:
    """Tune them all in one context; nothing is forgotten until the end."""
    count = 10 if quick else 300
    with tempfile.TemporaryDirectory() as folder:
        context = context_of(folder, SETTINGS)
        prime(context)
        # Torch keeps what it allocates for operands; one shape of the largest size makes it do so before.
        _tune(context, CudaShape("float32", 8 * (count + 1), 128, 96, bias=True))
        before, free = _counts(), _free()
        begin = time.perf_counter()
        for place in range(count):
            _tune(context, CudaShape("float32", 8 * place + 8, 128, 96, bias=place % 2 == 1))
        seconds = time.perf_counter() - begin
        kept, lost = _counts(), free - _free()
        tuned = context.stats()["measured"]
        kernels = {kernel for _op, _params, kernel, _ms in context.get_results()}
        context.plans.clear()
        backend = context.backend("0")
        if isinstance(backend, CublasLtBackend):
            backend.forget_plans()
        gone, lost_at_last = _counts(), free - _free()
    return Result(
        name="memory",
        question=f"Does everything come back after tuning {count} shapes?",
        figures=[
            Figure("shapes tuned", tuned, goal=Goal(count, at_least=True)),
            Figure("device memory not given back, plans kept", lost / _MIB, "MiB", Goal(64.0)),
            Figure("device memory not given back, plans let go", lost_at_last / _MIB, "MiB"),
            Figure("events alive", kept["events"] - before["events"], goal=Goal(0)),
            Figure("graphs alive", kept["graphs"] - before["graphs"], goal=Goal(0)),
            # The workspace of the stream, made by the first winner that needs one.
            Figure("our own device memory, growth", (kept["bytes"] - before["bytes"]) / _MIB, "MiB", Goal(32)),
            # Of each problem kept: one operation and at most four layouts.
            Figure(
                "descriptors alive a shape, plans kept",
                (kept["descriptors"] - before["descriptors"]) / count,
                "",
                Goal(5),
            ),
            Figure("descriptors alive, plans let go", gone["descriptors"], goal=Goal(before["descriptors"])),
            Figure("seconds of tuning", seconds, "s"),
        ],
        settings={"shapes": count, "variables": SETTINGS, "different winners": len(kernels)},
        rows=[{"when": when} | counts for when, counts in (("before", before), ("after", kept), ("at last", gone))],
    )


def _tune(context: TuningContext, shape: CudaShape) -> None:
    run_under(context, product_of(shape.operands()))


def _counts() -> dict[str, Any]:
    gc.collect()
    return {
        "descriptors": sum(descriptors.live_descriptors().values()),
        "events": stream.live_events(),
        "graphs": graph.live_graphs(),
        "bytes": memory.live_bytes(),
    }


def _free() -> int:
    import torch

    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return device(0).free_bytes
