"""The report: what the pages tell of a process, as one file to keep or to send, without a script and without links."""

import base64
import hashlib
from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from tensorplay.service.export import attachment
from tensorplay.service.listing import Filter
from tensorplay.service.live_runtime import FILE_SETTINGS
from tensorplay.service.met_devices import validators_of
from tensorplay.service.pages.overview import kept_gains
from tensorplay.service.pages.rendering import PageRoute, environment, hit_rate
from tensorplay.service.routes.rejections import rejections_of
from tensorplay.service.routes.results import models_of
from tensorplay.service.state import Shared

__all__ = ["MOST_ROWS", "router"]

MOST_ROWS = 200
"""Rows of each table; a report is read, and not computed with."""

_STYLE = """
:root { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif; }
body { max-width: 1200px; margin: 24px auto; padding: 0 16px; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: 13px; margin: 0 0 16px; }
th, td { padding: 3px 10px 3px 0; text-align: left; border-bottom: 1px solid #8886; vertical-align: top; }
.num { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
"""
# Whoever opens the file has no header from us: it says itself that nothing is loaded and nothing runs.
_CSP = f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"

router = APIRouter(route_class=PageRoute)


@router.get("/report")
async def save_report(request: Request, state: Shared) -> Response:
    """Return the report as a file."""
    runtime, now = state.runtime, datetime.now(UTC)
    page = await runtime.winners.page(Filter(), "-gain", MOST_ROWS, None)
    untuned, stats = await runtime.untuned.get(), runtime.context.stats()
    text = environment().get_template("report.html").render(
        style=_STYLE,
        csp=_CSP,
        instance=state.instance,
        time=now.isoformat(timespec="seconds"),
        stats=stats,
        hit_rate=hit_rate(stats),
        gains=await kept_gains(request, state),
        rows=await models_of(state, page.rows),
        total=page.total,
        untuned=untuned[:MOST_ROWS],
        untuned_total=len(untuned),
        rejections=(await rejections_of(state))[:MOST_ROWS],
        settings=[each for each in runtime.settings() if each.value != each.default and each.name not in FILE_SETTINGS],
        validators=validators_of(await runtime.met.listed()),
    )  # fmt: skip
    headers = attachment(f"tensorplay-{state.instance.pid}-{now:%Y%m%dT%H%M%SZ}.html")
    return HTMLResponse(text, headers={**headers, "Content-Security-Policy": f"{_CSP}; sandbox"})
