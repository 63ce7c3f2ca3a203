"""What both clients ask the first rank of a host about all of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import httpx

from tensorplay.service.client.call import Call, reader_of
from tensorplay.service.rank_schemas import Disagreement, RankAnswer, RankAnswers, RankModel

__all__ = ["AsyncRankMethods", "RankMethods"]

T = TypeVar("T")
Which = int | Literal["all"]

_PATH = "api/v1/ranks"
_ranks = reader_of(list[RankModel], "items")
_disagreements = reader_of(list[Disagreement], "items")
_answers = reader_of(RankAnswers)


class RankMethods(ABC):
    """Ranks, for the client that blocks."""

    def ranks(self) -> list[RankModel]:
        """Return the processes that were started together on that host; none when it was started alone."""
        return self._do(_listed())

    def disagreements(self, limit: int = 100) -> list[Disagreement]:
        """Return the shapes for which ranks recorded different kernels, the greatest difference in time first."""
        return self._do(_differing(limit))

    def set_on_ranks(self, values: Mapping[str, object], rank: Which = "all") -> list[RankAnswer]:
        """Change settings on one rank or on all; return what each answered, which may be a refusal."""
        return self._do(_changing(values, rank))

    @abstractmethod
    def _do(self, call: Call[T]) -> T:
        """Send a call, and return what its answer says."""


class AsyncRankMethods(ABC):
    """Ranks, for the client that is awaited."""

    async def ranks(self) -> list[RankModel]:
        """Return the processes that were started together on that host; none when it was started alone."""
        return await self._do(_listed())

    async def disagreements(self, limit: int = 100) -> list[Disagreement]:
        """Return the shapes for which ranks recorded different kernels, the greatest difference in time first."""
        return await self._do(_differing(limit))

    async def set_on_ranks(self, values: Mapping[str, object], rank: Which = "all") -> list[RankAnswer]:
        """Change settings on one rank or on all; return what each answered, which may be a refusal."""
        return await self._do(_changing(values, rank))

    @abstractmethod
    async def _do(self, call: Call[T]) -> T:
        """Send a call, and return what its answer says."""


def _listed() -> Call[list[RankModel]]:
    return Call(method="GET", path=_PATH, read=_ranks)


def _differing(limit: int) -> Call[list[Disagreement]]:
    return Call(method="GET", path=f"{_PATH}/disagreements", read=_disagreements, query={"limit": str(limit)})


def _changing(values: Mapping[str, object], rank: Which) -> Call[list[RankAnswer]]:
    def read(response: httpx.Response) -> list[RankAnswer]:
        if rank == "all":
            found: list[RankAnswer] = _answers(response).items
            return found
        body: Any = response.json()
        return [RankAnswer(local_rank=rank, status=response.status_code, body=body)]

    return Call(method="PATCH", path=f"{_PATH}/{rank}/settings", read=read, body={"values": dict(values)})
