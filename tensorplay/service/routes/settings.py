"""Switches, budgets and all other settings."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from tensorplay.errors import SettingError
from tensorplay.runtime.settings import SettingState
from tensorplay.runtime.settings_table import setting_of
from tensorplay.service.live_runtime import FILE_SETTINGS
from tensorplay.service.problems import Problem
from tensorplay.service.schemas import BudgetPatch, Listed, SettingModel, SettingPatch, SwitchPatch, SwitchValue, Value
from tensorplay.service.shown_text import encodable
from tensorplay.service.state import NOT_CHANGED, WRITES, IfMatch, IfNoneMatch, Shared, State, check_match, etag, listed

__all__ = ["BUDGETS", "SWITCHES", "model_of", "router", "shown_value"]

SWITCHES = ("enabled", "tuning", "record_untuned")
BUDGETS = ("max_tuning_duration_ms", "max_tuning_samples", "total_tuning_seconds", "workspace_mib")
SPENT = "spent_tuning_seconds"
_Switch = Annotated[str, Path(max_length=64, examples=["tuning"])]

router = APIRouter(tags=["settings"])


def model_of(state: State, setting: SettingState) -> SettingModel:
    """Return a setting as clients see it."""
    fields = {
        name: getattr(setting, name) for name in ("name", "value", "default", "origin", "variable", "allowed", "help")
    }
    if setting.name in FILE_SETTINGS:
        # Folders are nobody's business.
        fields |= {name: PurePath(str(fields[name])).name for name in ("value", "default")}
    fields["value"] = shown_value(fields["value"])
    return SettingModel(**fields, locked=state.runtime.is_locked(setting.name))


def shown_value(value: object) -> object:
    """Return the value of a setting as JSON can hold it: the environment may hold bytes that are no text."""
    return encodable(value) if isinstance(value, str) else value


def _some(state: State, response: Response, names: tuple[str, ...]) -> dict[str, SettingModel]:
    """Return the named settings, and say in the response which state that is."""
    response.headers["ETag"] = etag(state, "settings")
    return {each.name: model_of(state, each) for each in state.runtime.settings() if each.name in names}


def _budgets(state: State, response: Response) -> dict[str, SettingModel]:
    spent = state.runtime.context.spent_tuning_seconds()
    return _some(state, response, BUDGETS) | {
        SPENT: SettingModel(
            name=SPENT, value=round(spent, 3), default=0.0, origin="counted", locked=True, variable="",
            allowed="nothing: it is counted",
            help="Time that this process has measured for, in seconds: what total_tuning_seconds bounds.",
        )
    }  # fmt: skip


def _check_changeable(state: State, names: Iterable[str], if_match: str | None) -> None:
    state.check_writable()
    check_match(state, "settings", if_match, required=False)
    known = {setting.name for setting in state.runtime.settings()}
    for name in names:
        if name not in known:
            raise Problem(404, "not-found", "there is no such setting; GET /settings lists them")
        if state.runtime.is_locked(name):
            raise Problem(409, "locked", f"{name} cannot be changed by a client: no path is taken from one")


def _change(state: State, values: dict[str, Any], if_match: str | None) -> None:
    """Set what is named; null is the default."""
    _check_changeable(state, values, if_match)
    wanted = {name: setting_of(name).default if value is None else value for name, value in values.items()}
    try:
        # All of them are allowed, or none is set.
        for name, value in wanted.items():
            setting_of(name).check(value)
        for name, value in wanted.items():
            state.runtime.set(name, value)
    except SettingError as error:
        raise Problem(422, "not-allowed", str(error)) from None


@router.get("/switches", operation_id="switches_read", responses=NOT_CHANGED, response_model=dict[str, SettingModel])
async def read_switches(state: Shared, response: Response, if_none_match: IfNoneMatch = None) -> Any:
    """Return the switches of feature, measuring and recording."""
    tag = etag(state, "settings")
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return _some(state, response, SWITCHES)


@router.patch("/switches", operation_id="switches_change")
async def change_switches(
    state: Shared, patch: SwitchPatch, response: Response, if_match: IfMatch = None
) -> dict[str, SettingModel]:
    """Change the switches that are named; they act at once, and null puts the default back."""
    _change(state, patch.model_dump(exclude_unset=True), if_match)
    return _some(state, response, SWITCHES)


@router.put("/switches/{name}", operation_id="switches_put", dependencies=WRITES)
async def put_switch(
    state: Shared, name: _Switch, given: SwitchValue, response: Response, if_match: IfMatch = None
) -> SettingModel:
    """Change one switch; the same value changes nothing."""
    if name not in SWITCHES:
        raise Problem(404, "not-found", f"there is no such switch; allowed: {', '.join(SWITCHES)}")
    _change(state, {name: given.value}, if_match)
    return _some(state, response, (name,))[name]


@router.get("/budgets", operation_id="budgets_read")
async def read_budgets(state: Shared, response: Response) -> dict[str, SettingModel]:
    """Return the ceilings of measuring, and what is spent of the seconds."""
    return _budgets(state, response)


@router.patch("/budgets", operation_id="budgets_change")
async def change_budgets(
    state: Shared, patch: BudgetPatch, response: Response, if_match: IfMatch = None
) -> dict[str, SettingModel]:
    """Change the budgets that are named; null is the default. What is being measured keeps what it began with."""
    _change(state, patch.model_dump(exclude_unset=True), if_match)
    return _budgets(state, response)


@router.get("/settings", operation_id="settings_list", responses=NOT_CHANGED, response_model=Listed[SettingModel])
async def list_settings(state: Shared, response: Response, if_none_match: IfNoneMatch = None) -> Any:
    """Return every setting with its value and where that came from."""
    tag = etag(state, "settings")
    if if_none_match == tag:
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    items = [model_of(state, setting) for setting in state.runtime.settings()]
    return listed(items, state.runtime.revision("settings"))


@router.patch("/settings", operation_id="settings_change", dependencies=WRITES)
async def change_settings(
    state: Shared, patch: SettingPatch, response: Response, if_match: IfMatch = None
) -> dict[str, SettingModel]:
    """Change settings by name, where null is the default; names of files are not taken."""
    _change(state, patch.values, if_match)
    return _some(state, response, tuple(patch.values))


@router.put("/settings/{name}", operation_id="settings_put", dependencies=WRITES)
async def put_setting(
    state: Shared, name: str, given: Value, response: Response, if_match: IfMatch = None
) -> SettingModel:
    """Change one setting; null is the default, and the same value changes nothing."""
    _change(state, {name: given.value}, if_match)
    return _some(state, response, (name,))[name]


@router.delete("/settings/{name}", operation_id="settings_reset", dependencies=WRITES)
async def reset_setting(state: Shared, name: str, response: Response, if_match: IfMatch = None) -> SettingModel:
    """Undo the changes of one setting: it is again what the environment said at the start, else its default."""
    _check_changeable(state, (name,), if_match)
    state.runtime.reset(name)
    return _some(state, response, (name,))[name]
