"""For those who watch processes: liveness, readiness, and numbers for Prometheus."""

import asyncio

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from tensorplay.service.metrics import Looked, RuntimeCollector
from tensorplay.service.own_user import is_own_user
from tensorplay.service.problem_schemas import STOPPING
from tensorplay.service.rank_metrics import RankMetrics
from tensorplay.service.routes.rejections import rejections_of
from tensorplay.service.state import Shared

__all__ = ["router"]

_LOOK_S = 0.01

router = APIRouter(tags=["health"])


@router.get("/livez", operation_id="livez")
async def livez() -> dict[str, str]:
    """Return that the process answers; does no work."""
    return {"status": "alive"}


@router.get("/readyz", operation_id="readyz", responses=STOPPING)
async def readyz(state: Shared) -> dict[str, str]:
    """Return whether the service is ready: not while it stops."""
    state.hub.check_open()
    return {"status": "ready"}


@router.get("/metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request, state: Shared) -> Response:
    """Return counts for Prometheus, as OpenMetrics where that is accepted; never a shape as a label.

    The first rank of a host answers for all of them.
    """
    registry = CollectorRegistry()
    # The ranks ask each other through the private socket, and want what is each one's own.
    if state.ranks.is_first and not is_own_user(request.scope):
        registry.register(RankMetrics(await state.ranks.metrics(request.app)))
    else:
        untuned, index = await state.runtime.untuned.get(), await state.runtime.winners.get()
        rejections, devices = await rejections_of(state), await state.runtime.met.listed()
        looked = Looked(len(index), len(untuned), rejections, devices, await _lag_s())
        registry.register(RuntimeCollector(state, looked))
    encode, kind = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(registry), headers={"Content-Type": kind, "Vary": "Accept"})


async def _lag_s() -> float:
    """Return how much later than it should this loop wakes up: as late as the program lets it."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await asyncio.sleep(_LOOK_S)
    return max(0.0, loop.time() - begin - _LOOK_S)
