"""The devices that were met: what their results files must match, and the files."""

import re

from fastapi import APIRouter, Request, Response

from tensorplay.service.file_names import FILE_PATTERN
from tensorplay.service.met_devices import validators_of
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.files import files_of
from tensorplay.service.state import Shared

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)


@router.get("/devices")
async def show_devices(request: Request, state: Shared) -> Response:
    """Return the devices, each with its validators, and the files."""
    files, met = await files_of(state), await state.runtime.met.listed()
    return await render(
        request, state, "devices.html", page="devices", kinds="files results untuned jobs",
        files=files,
        # Results may go to a file of another name, which nobody can load or save by an address.
        named={each.name for each in files if re.fullmatch(FILE_PATTERN, each.name)},
        devices=list(dict.fromkeys(each.device for each in met)),
        validators=validators_of(met),
        is_busy=state.jobs.running() is not None,
    )  # fmt: skip
