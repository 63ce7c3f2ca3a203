"""What the runtime met: the process, its devices and their validators, counts and the log."""

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tensorplay.runtime.plans import plan_count
from tensorplay.runtime.slices import paced
from tensorplay.service.identity import device_of
from tensorplay.service.installed import installed_packages
from tensorplay.service.listing import Filter
from tensorplay.service.met_devices import validators_of
from tensorplay.service.runtime_schemas import DeviceModel, Reresolved, RuntimeModel
from tensorplay.service.schemas import InstanceModel, Listed, LogEntry
from tensorplay.service.shown_text import encodable
from tensorplay.service.state import WRITES, Shared, State, listed

__all__ = ["devices_of", "router"]

_LINKS = {
    name: f"api/v1/{name}"
    for name in (
        "switches", "budgets", "settings", "results", "results.csv", "results.jsonl", "explain", "rejections",
        "rejections.csv", "untuned", "untuned.csv", "jobs", "files", "validators", "devices", "runtime", "stats", "log",
        "events", "ranks", "ranks/disagreements", "openapi.json",
    )
} | {name: name for name in ("metrics", "livez", "readyz")}  # fmt: skip

router = APIRouter(tags=["runtime"])

Since = Annotated[
    int, Query(ge=0, le=2**63 - 1, description="Only events behind this number; the `revision` of the list before.")
]
"""What is known of the log, as a query parameter."""


@router.get("/", include_in_schema=False)
@router.get("", operation_id="root")
async def read_root(state: Shared) -> InstanceModel:
    """Return what process this is, and where the rest is."""
    devices = [each.device for each in await state.runtime.met.listed()]
    return InstanceModel(**state.instance._asdict(), read_only=state.runtime.read_only, devices=devices, links=_LINKS)


async def devices_of(state: State) -> list[DeviceModel]:
    """Return the devices that were met, without touching one."""
    runtime = state.runtime
    met = await runtime.met.listed()
    validators = validators_of(met)
    files: dict[str, list[str]] = {}
    for each in met:
        files.setdefault(each.device, []).append(encodable(PurePath(each.path).name))
    rows = await runtime.untuned.get()
    untuned = await state.worker.compute(lambda: _counted(row.params for row in rows))
    rejections = _counted(each.params for each in runtime.rejections() if each.healed is None)
    return [
        DeviceModel(
            device=device,
            is_known=device in validators,
            validators=dict(validators.get(device, ())),
            files=names,
            results=(await runtime.winners.page(Filter(device=device), "op", 1, None)).total,
            untuned=untuned[device],
            rejections=rejections[device],
        )
        for device, names in files.items()
    ]


def _counted(every: Iterable[str]) -> Counter[str]:
    """Return how many signatures there are of each device, by their params."""
    return Counter(map(device_of, paced(every)))


@router.get("/devices", operation_id="devices_list", response_model=Listed[DeviceModel])
async def list_devices(state: Shared) -> Any:
    """Return the devices that were met."""
    return listed(await devices_of(state), state.runtime.revision("results"))


@router.get("/runtime", operation_id="runtime_read")
async def read_runtime(state: Shared) -> RuntimeModel:
    """Return the runtime: versions, what is ready to run, what is spent, and the revision of every list."""
    runtime = state.runtime
    settings = {setting.name: setting for setting in runtime.settings()}
    return RuntimeModel(
        version=state.instance.version,
        python=state.instance.python,
        packages=await state.worker.ask(installed_packages),
        plans=plan_count(runtime.context.plans),
        spent_tuning_seconds=round(runtime.context.spent_tuning_seconds(), 3),
        workspace_mib=int(str(settings["workspace_mib"].value)),
        revisions=runtime.revisions(),
        variables=sorted(each.variable for each in settings.values() if each.origin == "environment"),
    )


@router.post(
    "/actions/reresolve",
    operation_id="actions_reresolve",
    status_code=202,
    response_model=Reresolved,
    dependencies=WRITES,
)
async def reresolve(state: Shared) -> Reresolved:
    """Let every product be decided anew at its next call, by what is recorded and set then."""
    return Reresolved(plans=state.runtime.reresolve())


@router.get("/validators", operation_id="validators_read")
async def read_validators(state: Shared) -> dict[str, dict[str, str]]:
    """Return the facts that a results file must match, by device."""
    return {device: dict(pairs) for device, pairs in validators_of(await state.runtime.met.listed()).items()}


@router.get("/stats", operation_id="stats_read")
async def read_stats(state: Shared) -> dict[str, int]:
    """Return how often each thing happened in this process."""
    return state.runtime.context.stats()


@router.get("/log", operation_id="log_read", response_model=Listed[LogEntry])
async def read_log(state: Shared, since: Since = 0) -> Any:
    """Return the last events of the runtime, oldest first."""
    happenings = state.runtime.log(since)
    items = [LogEntry(**each._asdict()) for each in happenings]
    return listed(items, happenings[-1].number if happenings else since)
