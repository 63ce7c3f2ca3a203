"""The devices that were met: what their results files must match, and the files."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from tensorplay.service.jobs import OVER
from tensorplay.service.pages.links import WITH_FORM, root_of
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.files import FileName, files_of
from tensorplay.service.routes.jobs import started
from tensorplay.service.schemas import JobRequest, JobSource
from tensorplay.service.state import WRITES, Shared

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)


@router.get("/devices")
async def show_devices(request: Request, state: Shared) -> Response:
    """Return the devices, each with its validators, and the files."""
    page = render(
        request, state, "devices.html", page="devices", kinds="files results untuned jobs",
        files=await files_of(state),
        devices=list(dict.fromkeys(device for device, _ in state.runtime.context.results_files())),
        validators=state.runtime.validators(),
        is_busy=any(job.state not in OVER for job in state.jobs.listed()),
    )  # fmt: skip
    page.headers.update(WITH_FORM)
    return page


@router.post("/devices/tune/{name}", dependencies=WRITES)
async def tune_file(request: Request, state: Shared, name: FileName) -> Response:
    """Start measuring the signatures of a file, and go on to the jobs: what a form does that needs no script.

    The form has no fields, and so no body: the guard takes none that is not JSON.
    """
    await started(state, JobRequest(source=JobSource(file=name)))
    return RedirectResponse(f"{root_of(request.scope)}jobs", 303)
