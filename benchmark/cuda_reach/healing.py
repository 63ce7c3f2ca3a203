"""Stale entries heal: an invented kernel, one of another shape, one that needs too much workspace, another library.

Each is written into a results file in place of a winner. Three contexts follow: one that may not measure, one that
may, and one that must find the file as good as new. Every result on the way is compared with torch's in float64.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness.cuda_shapes import CudaShape, product_of
from harness.result import Figure, Goal, Result

from cuda_reach.setting import context_of, prime, recorded_kernel, run_under
from tensorplay.backends.base import Backend, CandidateQuery
from tensorplay.database.csv_text import parse_results
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext

SHAPE = CudaShape("float32", 48, 1024, 2048)
OTHERS = (
    CudaShape("float32", 4096, 4096, 512, bias=True),
    CudaShape("float32", 1, 256, 64),
    CudaShape("bfloat16", 64, 512, 4096, bias=True),
    CudaShape("float64", 256, 256, 256),
)
INVENTED = "lt_id9999_tile1_stages1_splitk1_red0_swizzle0_custom0_inner0_cluster0"


class Case(NamedTuple):
    """One way to be stale: the kernel that is put into the file, and the settings under which it is met."""

    name: str
    kernel: str
    settings: dict[str, str]


def measure(quick: bool) -> Result:
    """Try every case, each in a folder of its own."""
    del quick
    with tempfile.TemporaryDirectory() as folder:
        context = context_of(folder)
        prime(context)
        cases = list(_cases(context.backend("0")))
        rows = [_tried(case) for case in cases] + [_other_library()]
    return Result(
        name="healing",
        question="Does every stale entry heal, with right results meanwhile?",
        figures=[
            Figure("cases tried", len(rows), goal=Goal(4, at_least=True)),
            Figure("cases that did not heal", sum(not row["healed"] for row in rows), goal=Goal(0)),
            Figure("wrong results", sum(row["wrong"] for row in rows), goal=Goal(0)),
        ],
        settings={"shape": str(SHAPE)},
        rows=rows,
    )


def _cases(backend: Backend) -> Iterator[Case]:
    yield Case("invented algorithm", INVENTED, {})
    foreign = _refused(backend)
    if foreign is not None:
        yield Case("algorithm of another shape", foreign, {})
    greedy = [plan for plan in backend.candidates(SHAPE.problem, CandidateQuery()) if plan.workspace_bytes]
    if greedy:
        most = max(greedy, key=lambda plan: plan.workspace_bytes)
        yield Case("too much workspace", most.kernel, {"WORKSPACE_MIB": "0"})


def _refused(backend: Backend) -> str | None:
    """Return a kernel that the library lists for another product and refuses for ours."""
    for other in OTHERS:
        for plan in (backend.first_choice(other.problem), *backend.candidates(other.problem, CandidateQuery())):
            try:
                backend.rebuild(SHAPE.problem, plan.kernel)
            except KernelUnavailableError:
                return plan.kernel
    return None


def _tried(case: Case) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        product, wrong = _product()
        first = context_of(folder, case.settings)
        run_under(first, product)
        key = _key(first)
        (path,) = Path(folder).glob("*.csv")
        path.write_text(_replaced(path.read_text(), key, case.kernel))
        stale = path.read_bytes()
        without = context_of(folder, {"TUNING": "0"} | case.settings)
        run_under(without, product)
        mistakes = int(wrong())
        untouched = path.read_bytes() == stale and without.stats()["measured"] == 0
        healing = context_of(folder, case.settings)
        run_under(healing, product)
        mistakes += int(wrong())
        written = {entry.signature: entry.kernel for entry in parse_results(path.read_bytes()).entries}
        after = context_of(folder, case.settings)
        run_under(after, product)
        mistakes += int(wrong())
        reasons = [rejection.reason for rejection in healing.get_rejections()]
        healed = (
            len(without.get_rejections()) == 1
            and healing.stats()["measured"] == 1
            and written.get(key) not in {None, case.kernel}
            and (after.stats()["measured"], after.stats()["replayed"], after.stats()["rejected"]) == (0, 1, 0)
        )
        return {
            "case": case.name,
            "healed": healed and untouched,
            "wrong": mistakes,
            "stale": case.kernel,
            "healed to": recorded_kernel(after, key),
            "reason": "; ".join(reasons),
        }


def _other_library() -> dict[str, Any]:
    """Try a file of another cuBLASLt: it stays as it was, and ours goes beside it."""
    with tempfile.TemporaryDirectory() as folder:
        product, wrong = _product()
        run_under(context_of(folder), product)
        (path,) = Path(folder).glob("*.csv")
        lines = path.read_text().splitlines()
        theirs = [
            "Validator,CUBLASLT_VERSION,10000" if line.startswith("Validator,CUBLASLT_VERSION,") else line
            for line in lines
        ]
        path.write_text("\n".join(theirs) + "\n")
        foreign = path.read_bytes()
        healing = context_of(folder)
        run_under(healing, product)
        mistakes = int(wrong())
        after = context_of(folder)
        run_under(after, product)
        mistakes += int(wrong())
        siblings = [other for other in Path(folder).glob("*.csv") if other != path]
        return {
            "case": "other library version",
            "healed": path.read_bytes() == foreign
            and len(siblings) == 1
            and healing.stats()["measured"] == 1
            and (after.stats()["measured"], after.stats()["replayed"]) == (0, 1),
            "wrong": mistakes,
            "stale": "every entry",
            "healed to": recorded_kernel(after, _key(after)),
            "reason": "validators differ",
        }


def _product() -> tuple[Callable[[], Any], Callable[[], bool]]:
    """Return the product, and the question whether what it left is wrong; what it left goes with the question."""
    operands = SHAPE.operands()
    exact = operands.left.double() @ operands.right.double()
    magnitude = operands.left.double().abs() @ operands.right.double().abs()

    def wrong() -> bool:
        found = operands.out.double()
        is_wrong = not bool(((found - exact).abs() <= SHAPE.k**0.5 * 2.0**-21 * magnitude).all())
        operands.out.fill_(float("nan"))
        return is_wrong

    return product_of(operands), wrong


def _key(context: TuningContext) -> Signature:
    """Return the one signature that is recorded: the ceiling of workspace may be part of it."""
    ((op, params, *_),) = context.get_results()
    return Signature(op, params)


def _replaced(text: str, key: Signature, kernel: str) -> str:
    begin = f"{key.op},{key.params},"
    lines = [
        f"{begin}{kernel},{line.rsplit(',', 1)[1]}" if line.startswith(begin) else line for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"
