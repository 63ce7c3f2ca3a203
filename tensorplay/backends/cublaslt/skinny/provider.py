"""The source of candidates `skinny`: kernels of our own for products of few rows or columns."""

from collections.abc import Iterator
from itertools import islice
from typing import ClassVar

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.skinny.choice import neighbouring, promising, varied
from tensorplay.backends.cublaslt.skinny.configuration import SOURCE, Configuration
from tensorplay.backends.cublaslt.skinny.plan import skinny_plan
from tensorplay.backends.cublaslt.skinny.shape import skinny_shape
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, SourceKernelId

__all__ = ["SkinnySource"]

_CLUSTERS = (9, 0)
# Each is compiled, at about 0.2 s, where it has not been before.
_MOST_OFFERED = {"wide": 4, "search": 12}


class SkinnySource:
    """Offers, rebuilds and varies skinny kernels; they need no workspace, and sum in the same order each time."""

    name: ClassVar[str] = SOURCE

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        """Yield a handful of plans, most promising first; none for other problems, and none for `heuristic`."""
        if query.breadth == "heuristic" or (query.sources is not None and self.name not in query.sources):
            return
        try:
            shape = skinny_shape(problem)
        except KernelUnavailableError:
            return
        here = device(int(problem.device))
        ranked = promising(shape, multiprocessors=here.multiprocessors, clusters=here.capability >= _CLUSTERS)
        yield from islice(self._plans(problem, varied(ranked)), _MOST_OFFERED[query.breadth])

    def rebuild(self, problem: GemmProblem, kernel_id: SourceKernelId) -> Plan:
        """Return the plan that a kernel id names; `KernelUnavailableError`, with the reason, when there is none."""
        return skinny_plan(problem, Configuration.of(kernel_id))

    def neighbours(self, problem: GemmProblem, kernel_id: SourceKernelId, query: CandidateQuery) -> Iterator[Plan]:
        """Yield plans one step away from a kernel id of this problem."""
        del query
        shape = skinny_shape(problem)
        yield from self._plans(problem, neighbouring(Configuration.of(kernel_id), shape))

    @staticmethod
    def _plans(problem: GemmProblem, configurations: Iterator[Configuration]) -> Iterator[Plan]:
        for configuration in configurations:
            try:
                yield skinny_plan(problem, configuration)
            except KernelUnavailableError:
                # Not here: an older device, a compiler that refuses. The others may run.
                continue
