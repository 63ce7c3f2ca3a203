"""Sources of candidates beside cuBLASLt: who offers, rebuilds and varies kernels of one kind.

Each has one word, which begins its kernel ids and is what `SOURCES` names.
"""

from collections.abc import Iterator
from functools import cache
from typing import ClassVar, Protocol

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.gemm import GemmProblem, SourceKernelId
from tensorplay.locks import imported
from tensorplay.typing import Pending

__all__ = ["CandidateSource", "further_sources"]


class CandidateSource(Protocol):
    """A provider of candidates whose kernel ids are of the class `SourceKernelId`; safe in any number of threads."""

    name: ClassVar[str]

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        """Return plans, built and checked, most promising first; none for a problem that is not the source's.

        What takes long may be begun before the first is taken.
        """
        ...

    def rebuild(self, problem: GemmProblem, kernel_id: SourceKernelId) -> Plan:
        """Return the plan that a kernel id names.

        Raises
        ------
        KernelUnavailableError
            When this build, device or problem cannot run it; the message is the reason.
        """
        ...

    def neighbours(
        self, problem: GemmProblem, kernel_id: SourceKernelId, query: CandidateQuery
    ) -> Iterator[Plan | Pending]:
        """Yield plans that differ from a kernel id of this problem in one step; none where there is nothing to vary.

        `Pending` in the place of one that is still being made.
        """
        ...


@cache
def further_sources() -> dict[str, CandidateSource]:
    """Return the sources beside cuBLASLt by name, in the order in which they offer; imported at the first call."""
    package = "tensorplay.backends.cublaslt"
    found: tuple[CandidateSource, ...] = (
        imported(f"{package}.classic_source").ClassicSource(),
        imported(f"{package}.skinny.provider").SkinnySource(),
    )
    return {source.name: source for source in found}
