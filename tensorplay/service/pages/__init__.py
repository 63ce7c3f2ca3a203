"""The dashboard: pages that the server renders, which a script keeps up to date and a person can do without."""

from fastapi import APIRouter

from tensorplay.service.pages import (
    devices,
    error_page,
    event_log,
    form_change,
    found_pages,
    jobs_page,
    login,
    overview,
    ranks_page,
    report,
    result_page,
    results_page,
    settings_page,
    static_files,
)

__all__ = ["login_code", "problem_page", "router"]

router = APIRouter(include_in_schema=False)
for _module in (
    overview,
    results_page,
    result_page,
    found_pages,
    jobs_page,
    ranks_page,
    settings_page,
    event_log,
    devices,
    report,
    login,
    form_change,
    static_files,
):
    router.include_router(_module.router)

problem_page = error_page.problem_page
login_code = login.LoginCode
