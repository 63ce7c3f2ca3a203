"""The source of candidates `cublas`: the classic call, which on a few shapes finds what cuBLASLt does not offer.

What it runs is its own choice, by type, sizes, alignment and scratch memory: the kernel id names the call, not the
kernel. With scratch memory of the stream's own, the choice and the bits are the same each time.
"""

from collections.abc import Iterator
from typing import ClassVar

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.classic import classic_plan
from tensorplay.backends.cublaslt.plan import workspace_ceiling
from tensorplay.errors import KernelUnavailableError, LaunchError
from tensorplay.gemm import GemmProblem, SourceKernelId

__all__ = ["CLASSIC", "ClassicSource"]

CLASSIC = SourceKernelId("cublas")
"""The only kernel id of the source."""


class ClassicSource:
    """Offers the classic call for products without a bias and an activation; it has nothing to vary."""

    name: ClassVar[str] = CLASSIC.source

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        """Yield the call; nothing where all must be `deterministic`, since it does not say how it sums."""
        if query.deterministic:
            return
        try:
            plan = self.rebuild(problem, CLASSIC)
        except (KernelUnavailableError, LaunchError):
            # The second where the kernel that copies an addend does not compile here.
            return
        if plan.workspace_bytes <= query.workspace_bytes:
            yield plan

    def rebuild(self, problem: GemmProblem, kernel_id: SourceKernelId) -> Plan:
        """Return the plan of the call.

        Raises
        ------
        KernelUnavailableError
            When the id has attributes, or the call alone cannot do the product within its scratch memory.
        """
        if kernel_id != CLASSIC:
            raise KernelUnavailableError(f"{kernel_id} is no kernel of classic cuBLAS; allowed: {CLASSIC}")
        if problem.bias or problem.activation != "none":
            raise KernelUnavailableError("the classic call adds no bias and applies no activation")
        # Sums as strictly as cuBLASLt's candidates do, so that what is compared is the same product.
        plan = classic_plan(problem, kernel=str(kernel_id), strict=True)
        ceiling = workspace_ceiling(problem)
        if plan.workspace_bytes > ceiling:
            raise KernelUnavailableError(
                f"the classic call needs {plan.workspace_bytes} bytes of workspace, allowed: {ceiling}"
            )
        return plan

    def neighbours(self, problem: GemmProblem, kernel_id: SourceKernelId, query: CandidateQuery) -> Iterator[Plan]:
        """Yield nothing."""
        del problem, kernel_id, query
        yield from ()
