"""What the runtime met: rejections, untuned signatures, files, devices, counts and the log."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from tensorplay.service.identity import result_id
from tensorplay.service.schemas import FileModel, InstanceModel, Listed, LogEntry, RejectionModel, UntunedModel
from tensorplay.service.state import Shared, State, etag, listed

__all__ = ["files_of", "rejections_of", "router", "untuned_of"]

router = APIRouter(tags=["runtime"])


def rejections_of(state: State) -> list[RejectionModel]:
    """Return the rejections, oldest first."""
    return [RejectionModel(id=result_id(each.op, each.params), **each._asdict()) for each in state.runtime.rejections()]


def untuned_of(state: State) -> list[UntunedModel]:
    """Return the untuned signatures, the most called first."""
    found = [
        UntunedModel(id=identity, op=op, params=params, calls=sum(calls.values()))
        for identity, (op, params), calls in state.runtime.untuned()
    ]
    return sorted(found, key=lambda each: -each.calls)


def files_of(state: State) -> list[FileModel]:
    """Return the results files by name; their folders are nobody's business."""
    found = []
    for device, path in state.runtime.context.results_files():
        try:
            status = Path(path).stat()
        except OSError:
            found.append(FileModel(name=Path(path).name, device=device, size=None, modified=None))
            continue
        modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
        found.append(FileModel(name=Path(path).name, device=device, size=status.st_size, modified=modified))
    return found


@router.get("/", include_in_schema=False)
@router.get("", operation_id="root")
async def read_root(state: Shared) -> InstanceModel:
    """Return what process this is."""
    return InstanceModel(**state.instance._asdict(), read_only=state.runtime.read_only)


@router.get("/rejections", operation_id="rejections_list", response_model=Listed[RejectionModel])
async def list_rejections(state: Shared, response: Response) -> Any:
    """Return the recorded winners that did not run, each with its reason."""
    response.headers["ETag"] = etag(state, "rejections")
    return listed(rejections_of(state), state.runtime.revision("rejections"))


@router.get("/untuned", operation_id="untuned_list", response_model=Listed[UntunedModel])
async def list_untuned(state: Shared, response: Response) -> Any:
    """Return the signatures that ran without a winner, with how often they were called."""
    response.headers["ETag"] = etag(state, "untuned")
    return listed(untuned_of(state), state.runtime.revision("untuned"))


@router.get("/files", operation_id="files_list", response_model=Listed[FileModel])
async def list_files(state: Shared) -> Any:
    """Return the results files that winners go to."""
    return listed(files_of(state), state.runtime.revision("files"))


@router.post("/files/save", operation_id="files_save")
async def save_files(state: Shared) -> dict[str, bool]:
    """Rewrite every results file with the winners in memory, merged with what others wrote."""
    state.check_writable()
    return {"written": state.runtime.context.write_file()}


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
