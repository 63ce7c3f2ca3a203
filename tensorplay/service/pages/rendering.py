"""From a template to an answer: the environment that escapes everything, and what every page shows around its own."""

import hashlib
from collections.abc import Callable, Coroutine, Iterable
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tensorplay.service.declared_query import declared_names
from tensorplay.service.met_devices import MetDevice
from tensorplay.service.own_path import own_path
from tensorplay.service.pages.form_call import call_text
from tensorplay.service.pages.formats import FILTERS
from tensorplay.service.pages.links import WITH_FORM, form_action, query, root_of
from tensorplay.service.pages.next_page import checked_next
from tensorplay.service.pages.own_url import own_url
from tensorplay.service.pages.people_words import WORDS, done_text
from tensorplay.service.pages.signed_in import is_signed_in
from tensorplay.service.pages.static_files import static_url
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.service.shown_text import unmasked
from tensorplay.service.state import State

__all__ = ["NAVIGATION", "PageRoute", "environment", "hit_rate", "render", "switches_of"]

NAVIGATION = (
    ("", "Overview"),
    ("results", "Results"),
    ("untuned", "Untuned"),
    ("rejections", "Rejections"),
    ("jobs", "Jobs"),
    ("ranks", "Ranks"),
    ("settings", "Settings"),
    ("events", "Events"),
    ("devices", "Devices"),
)
"""The pages, by their path and name."""

_CALLS = ("replayed", "first_choice", "selected_in_process", "fallback")


class PageRoute(APIRoute):
    """A route that takes a field of a form that was left empty as one that is not there."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler behind one that cleans the query."""
        handle = super().get_route_handler()

        async def cleaned(request: Request) -> Response:
            pairs = parse_qsl(request.scope["query_string"].decode("ascii", "replace"))
            scope = {**request.scope, "query_string": urlencode(pairs).encode()}
            return await handle(Request(scope, request.receive))

        return cleaned


def _finalized(value: Any) -> Any:
    """Return what a template shows; what is markup already was made here."""
    return unmasked(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def environment() -> Environment:
    """Return the one environment; every value is escaped, whatever a template is called, and nothing hides in it."""
    made = Environment(
        loader=PackageLoader("tensorplay.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals.update(static=static_url, navigation=NAVIGATION, call_text=call_text, words=WORDS)
    return made


def hit_rate(stats: dict[str, int]) -> float | None:
    """Return the share of calls that ran their recorded winner; None before the first call."""
    calls = sum(stats[name] for name in _CALLS)
    return stats["replayed"] / calls if calls else None


def _libraries(devices: Iterable[MetDevice]) -> list[str]:
    """Return the versions of cuBLASLt that winners are for; mostly one, and none where no product ran on a GPU."""
    pairs = (pair for each in devices for pair in each.validators or ())
    return list(dict.fromkeys(value for name, value in pairs if name == "CUBLASLT_VERSION"))


def switches_of(state: State) -> dict[str, Any]:
    """Return the values of all settings."""
    return {setting.name: setting.value for setting in state.runtime.settings()}


async def render(request: Request, state: State, name: str, *, page: str, kinds: str = "", **values: Any) -> Response:
    """Return a page, or with `_partial` in the query only the part of it that changes.

    Parameters
    ----------
    request, state
        Of the call.
    name : str
        The template.
    page : str
        The path of the page in the navigation.
    kinds : str
        What its content depends on besides the settings, as the event stream names it, with spaces between.
    **values
        For the template.
    """
    devices = await state.runtime.met.listed()
    stats = state.runtime.context.stats()
    is_partial = "_partial" in request.query_params
    # What a bookmark has besides goes no further: some links lead to the API, which knows every name that it takes.
    names = declared_names(request)
    given = [(name, value) for name, value in request.query_params.multi_items() if name in names]
    root = root_of(request.scope)
    path = own_path(request.scope).lstrip("/")
    text = environment().get_template(name).render(
        layout="partial.html" if is_partial else "base.html",
        root=root,
        address=own_url(request.scope),
        do=form_action(root, checked_next((path + query(given)).removesuffix("?"))),
        page=page,
        kinds=f"settings {kinds}",
        given=request.query_params,
        link=lambda **changes: query(given, changes),
        instance=state.instance,
        read_only=state.runtime.read_only,
        values=switches_of(state),
        stats=stats,
        hit_rate=hit_rate(stats),
        device_names=list(dict.fromkeys(each.device for each in devices)),
        is_signed_in=is_signed_in(request, state),
        done=done_text(request.query_params.get("told", "")),
        libraries=_libraries(devices),
        is_recorded=isinstance(state.runtime.context, RecordedContext),
        **values,
    )  # fmt: skip
    tag = f'"{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-store", "Vary": "Accept", **WITH_FORM}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, headers=headers)
