"""Tuning jobs: how far each is, and how to end it."""

from fastapi import APIRouter, Request, Response

from tensorplay.service.jobs import OVER
from tensorplay.service.pages.rendering import PageRoute, render
from tensorplay.service.routes.jobs import model_of
from tensorplay.service.state import Shared

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)


@router.get("/jobs")
async def show_jobs(request: Request, state: Shared) -> Response:
    """Return all jobs of this process, the newest first."""
    jobs = [model_of(job) for job in state.jobs.listed()]
    return await render(
        request, state, "jobs.html", page="jobs", kinds="jobs",
        jobs=jobs,
        over=OVER,
        untuned=len(await state.runtime.untuned.get()),
    )  # fmt: skip
