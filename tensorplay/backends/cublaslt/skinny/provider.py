"""The source of candidates `skinny`: kernels of our own for products of few rows or columns."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import ClassVar

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt.compiling import at_once, begin_compiling, has_room, is_compiling, wait_for_any
from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.skinny.choice import neighbouring, varied
from tensorplay.backends.cublaslt.skinny.configuration import SOURCE, Configuration
from tensorplay.backends.cublaslt.skinny.estimate import estimate
from tensorplay.backends.cublaslt.skinny.modules import is_full, is_loaded
from tensorplay.backends.cublaslt.skinny.plan import skinny_plan
from tensorplay.backends.cublaslt.skinny.shape import skinny_shape
from tensorplay.backends.cublaslt.skinny.source_text import source_text
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, SourceKernelId
from tensorplay.typing import Pending

__all__ = ["SkinnySource"]

_CLUSTERS = (9, 0)
# Each is compiled, at 0.1 to 0.4 s, where it has not been before; as many at once as there are processors.
_MOST_OFFERED = {"wide": 4, "search": 12}


class SkinnySource:
    """Offers, rebuilds and varies skinny kernels; they need no workspace, and sum in the same order each time."""

    name: ClassVar[str] = SOURCE

    def candidates(self, problem: GemmProblem, query: CandidateQuery) -> Iterator[Plan]:
        """Return a handful of plans, most promising first; none for other problems, and none for `heuristic`.

        Their kernels are being compiled from the call on, so that whoever has something else to do first loses no time.
        """
        if query.breadth == "heuristic" or (query.sources is not None and self.name not in query.sources):
            return iter(())
        try:
            shape = skinny_shape(problem)
        except KernelUnavailableError:
            return iter(())
        here = device(int(problem.device))
        clusters = here.capability >= _CLUSTERS
        ranked = varied(shape, multiprocessors=here.multiprocessors, clusters=clusters)
        chosen = list(islice(ranked, _MOST_OFFERED[query.breadth]))
        _begin(int(problem.device), [source_text(each, shape) for each in chosen])
        return self._plans(problem, chosen)

    def rebuild(self, problem: GemmProblem, kernel_id: SourceKernelId) -> Plan:
        """Return the plan that a kernel id names; `KernelUnavailableError`, with the reason, when there is none."""
        return skinny_plan(problem, Configuration.of(kernel_id))

    def neighbours(
        self, problem: GemmProblem, kernel_id: SourceKernelId, query: CandidateQuery
    ) -> Iterator[Plan | Pending]:
        """Yield plans one step away from a kernel id of this problem, the fastest by the model first.

        The next ones are compiled meanwhile; while none of them is, `Pending` comes. One that is loaded already needs
        no processor, and waits for none.
        """
        del query
        ordinal = int(problem.device)
        shape, here = skinny_shape(problem), device(ordinal)
        beside = list(neighbouring(Configuration.of(kernel_id), shape))
        beside.sort(key=lambda each: estimate(each, shape, here.multiprocessors))
        # With its source each, which takes longer to write than to look up.
        coming = ((each, source_text(each, shape)) for each in beside)
        following, begun = next(coming, None), list[tuple[Configuration, str]]()
        while following or begun:
            while following and len(begun) < at_once() and (is_loaded(ordinal, following[1]) or has_room()):
                _begin(ordinal, [following[1]])
                begun.append(following)
                following = next(coming, None)
            made = [each for each in begun if not is_compiling(each[1], here.capability)]
            if not made:
                yield Pending(wait_for_any)
            for each in made:
                begun.remove(each)
                yield from self._plans(problem, [each[0]])

    @staticmethod
    def _plans(problem: GemmProblem, configurations: Iterable[Configuration]) -> Iterator[Plan]:
        for configuration in configurations:
            try:
                yield skinny_plan(problem, configuration)
            except KernelUnavailableError:
                # Not here: an older device, a compiler that refuses. The others may run.
                continue


def _begin(ordinal: int, sources: Sequence[str]) -> None:
    if not is_full():
        begin_compiling([each for each in sources if not is_loaded(ordinal, each)], device(ordinal).capability)
