"""Every setting: its value, where that came from, what is allowed, and a way to change it."""

from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response

from tensorplay.runtime.settings_table import setting_of
from tensorplay.service.pages.found_pages import Text
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.settings import BUDGETS, SWITCHES, model_of
from tensorplay.service.schemas import SettingModel
from tensorplay.service.state import Shared

__all__ = ["Editor", "editor_of", "router"]

router = APIRouter(route_class=PageRoute)


class Editor(NamedTuple):
    """How a value is edited: as `boolean`, `choice`, `integer`, `number`, `names`, or another kind as text."""

    kind: str
    choices: tuple[str, ...]
    largest: float | None
    text: str


def editor_of(name: str, value: Any) -> Editor:
    """Return the editor of a setting, with its value as the text to begin with."""
    kind = setting_of(name).kind
    text = ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
    return Editor("choice" if kind.choices else kind.name, kind.choices, kind.largest, text)


@router.get("/settings")
async def show_settings(request: Request, state: Shared, q: Text = "") -> Response:
    """Return the settings in three groups."""
    found = [model_of(state, setting) for setting in state.runtime.settings()]
    wanted = [each for each in found if q.casefold() in f"{each.name} {each.variable} {each.help}".casefold()]

    def group(of: SettingModel) -> str:
        return "Switches" if of.name in SWITCHES else "Budgets" if of.name in BUDGETS else "Everything else"

    names = ("Switches", "Budgets", "Everything else")
    return await render(
        request, state, "settings.html", page="settings", kinds="",
        groups={name: [(each, editor_of(each.name, each.value)) for each in wanted if group(each) == name]
                for name in names},
        is_empty=not wanted,
        spent=state.runtime.context.spent_tuning_seconds(),
        q=q,
    )  # fmt: skip
