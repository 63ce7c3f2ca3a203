"""What the runtime met: the process, validators, counts and the log."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from tensorplay.service.schemas import InstanceModel, Listed, LogEntry
from tensorplay.service.state import Shared, listed

__all__ = ["router"]

router = APIRouter(tags=["runtime"])


@router.get("/", include_in_schema=False)
@router.get("", operation_id="root")
async def read_root(state: Shared) -> InstanceModel:
    """Return what process this is."""
    devices = [device for device, _ in state.runtime.context.results_files()]
    return InstanceModel(**state.instance._asdict(), read_only=state.runtime.read_only, devices=devices)


@router.get("/validators", operation_id="validators_read")
async def read_validators(state: Shared) -> dict[str, dict[str, str]]:
    """Return the facts that a results file must match, by device."""
    return {device: dict(pairs) for device, pairs in state.runtime.validators().items()}


@router.get("/stats", operation_id="stats_read")
async def read_stats(state: Shared) -> dict[str, int]:
    """Return how often each thing happened in this process."""
    return state.runtime.context.stats()


@router.get("/log", operation_id="log_read", response_model=Listed[LogEntry])
async def read_log(state: Shared, since: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0) -> Any:
    """Return the last events of the runtime, oldest first."""
    happenings = state.runtime.log(since)
    items = [LogEntry(**each._asdict()) for each in happenings]
    return listed(items, happenings[-1].number if happenings else since)
