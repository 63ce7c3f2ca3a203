"""Host cost of a hit with `out=`, against the library's own binding with ready arguments, and `torch.mm(out=)`."""

import random
import tempfile

from harness.bare import WORKSPACE_BYTES, bare_arguments, handle_and_workspace
from harness.cuda_shapes import CudaShape, product_of
from harness.result import Figure, Goal, Result
from harness.spread import differences, spread_of
from harness.timing import Contestant, interleave, statement

from cuda_reach.setting import context_of, kernel_run, prime, run_under
from tensorplay import mm
from tensorplay.backends.cublaslt.launch import maker
from tensorplay.backends.cublaslt.library import cublaslt
from tensorplay.backends.cublaslt.offers import checked_algorithm, first_algorithm
from tensorplay.backends.cublaslt.operation import Operation
from tensorplay.gemm import LtKernelId, parse_kernel_id
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.ops.device.torch_guard import guard_name
from tensorplay.ops.device.torch_shortcut import torch_shortcut
from tensorplay.runtime.process import use_context

SHAPE = CudaShape("float32", 64, 64, 64)
# Fewer than the launches that the driver takes before it makes the host wait.
CALLS = 200

SHORTFALL = (
    "With look-up and launch in C, 1.55 and 1.76 us over the binding where that takes 8.5 and 8.7 us. In Python it "
    "was 1.80 us where the binding takes 7.1 us, 2.14 where it takes 8.5, 2.87 and 3.47 where it takes 10.2 and 11.7 "
    "us: the processors of the lent machines differ. What is left is what torch must be asked, whoever asks: three "
    "addresses, the check of three tensors, the stream and the switch. The result tells which of the two it measured."
)


def measure(quick: bool) -> Result:
    """Compare the three by turns in this process; the device is idle before each block."""
    import torch

    rounds = 5 if quick else 401
    handle, workspace = handle_and_workspace()
    operands = SHAPE.operands()
    with tempfile.TemporaryDirectory() as folder:
        context = context_of(folder)
        prime(context)
        run_under(context, product_of(operands))
        kernel = kernel_run(context, SHAPE)
        operation = Operation(SHAPE.problem)
        kernel_id = parse_kernel_id(kernel)
        algorithm = (
            checked_algorithm(operation, kernel_id, ceiling=WORKSPACE_BYTES)
            if isinstance(kernel_id, LtKernelId)
            else first_algorithm(operation, ceiling=WORKSPACE_BYTES)
        )
        if algorithm is None:
            raise RuntimeError(f"the library has no kernel for {SHAPE}")
        ready = bare_arguments(
            handle, operation, algorithm.address, workspace.data_ptr(), algorithm.workspace_bytes, operands
        )
        a, b, c = operands.left, operands.right, operands.out
        wait = torch.cuda.synchronize
        contestants = {
            "hit": Contestant(statement("mm(a, b, out=c)", mm=mm, a=a, b=b, c=c), wait),
            "binding": Contestant(
                statement("matmul(*arguments)", matmul=cublaslt().matmul, arguments=ready.arguments), wait
            ),
            "torch": Contestant(statement("mm(a, b, out=c)", mm=torch.mm, a=a, b=b, c=c), wait),
        }
        with use_context(context), torch.no_grad():
            for contestant in contestants.values():
                contestant.block(CALLS)
            values = interleave(
                contestants,
                rounds=rounds,
                loops=CALLS,
                rng=random.Random(0),  # noqa: S311 - an order, not a secret
            )
        stats = context.stats()
        guards = {guard_name(each.check) for each in context.plans.values() if isinstance(each, Direct)}
    over_binding = spread_of(differences(values["hit"], values["binding"])).scaled(1e6)
    over_torch = spread_of(differences(values["hit"], values["torch"])).scaled(1e6)
    alone = {name: spread_of(values[name]).scaled(1e6) for name in contestants}
    return Result(
        name="host_cost",
        question=f"What does a hit cost on the host, {SHAPE}, out given?",
        figures=[
            Figure("hit over the library's binding", over_binding.median, "us", Goal(2.0), over_binding),
            Figure("hit over torch.mm(out=)", over_torch.median, "us", Goal(0.0), over_torch),
            Figure("calls that were no hits", stats["first_choice"] + stats["fallback"], goal=Goal(0)),
            *(Figure(f"{name} itself", spread.median, "us", None, spread) for name, spread in alone.items()),
        ],
        settings={
            "calls a block": CALLS,
            "rounds": rounds,
            "kernel": kernel,
            "guards": ", ".join(sorted(guards)) or "none: the hot path was not taken",
            "hits are looked up in": "Python" if torch_shortcut().mm == torch_shortcut().mm_in_python else "C",
            "launches are in": "Python" if maker() is None else "C",
            "order": "A B C C B A, another each round",
        },
        shortfall=SHORTFALL,
    )
