"""The application: routes, errors and the guard around them, for the embedded server, or for a host to mount."""

import os
import secrets
from dataclasses import dataclass, field

from fastapi import FastAPI

from tensorplay.runtime.process import get_tuning_context
from tensorplay.service.cookies import cookie_of
from tensorplay.service.cursor import CursorKey
from tensorplay.service.declared_query import DECLARED_QUERY
from tensorplay.service.document import correct_document
from tensorplay.service.guard import Guard, GuardRules
from tensorplay.service.head_requests import HeadRequests
from tensorplay.service.host_names import checked_hosts
from tensorplay.service.hub import Hub
from tensorplay.service.idempotency import IdempotencyKeys
from tensorplay.service.identity import instance_of
from tensorplay.service.jobs import Jobs
from tensorplay.service.live_runtime import LiveRuntime
from tensorplay.service.pages import login_code, problem_page
from tensorplay.service.pages import router as pages_router
from tensorplay.service.placement import placement_of
from tensorplay.service.problem_schemas import ProblemModel
from tensorplay.service.problems import add_handlers
from tensorplay.service.rank_line import RankLine
from tensorplay.service.ranks import Ranks
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.service.request_id import NamedRequests
from tensorplay.service.result_files import ResultFiles
from tensorplay.service.routes import (
    events,
    explanation,
    files,
    found,
    health,
    jobs,
    rank_changes,
    ranks,
    rejections,
    result_changes,
    results,
    untuned,
)
from tensorplay.service.routes import settings as settings_routes
from tensorplay.service.runtime_folder import folder_to_use
from tensorplay.service.sessions import Sessions
from tensorplay.service.state import State
from tensorplay.service.token_check import TokenCheck
from tensorplay.service.token_text import checked_token
from tensorplay.service.watched import WatchedContext
from tensorplay.version import __version__

__all__ = ["MOST_BODY_BYTES", "ServiceSettings", "close_streams", "create_app", "line_of"]

MOST_BODY_BYTES = 1 << 20

_TAGS = [
    {"name": "settings", "description": "Switches, budgets and everything else that can be set."},
    {"name": "results", "description": "Winners and how they were chosen."},
    {"name": "rejections", "description": "Recorded winners that did not run, and what files were refused for."},
    {"name": "untuned", "description": "Signatures that ran without a winner."},
    {"name": "files", "description": "Results files, by their names."},
    {"name": "runtime", "description": "What the runtime met."},
    {"name": "jobs", "description": "Measuring on demand."},
    {"name": "events", "description": "What changes, as it changes."},
    {"name": "ranks", "description": "The processes that were started together on this host, as one sees them."},
    {"name": "health", "description": "For those who watch processes."},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How an application guards itself.

    Attributes
    ----------
    token : str
        What every changing request must show, 8 to 1024 characters of ASCII; made up unless given. The end of a line
        behind it is taken away.
    read_only : bool
        Whether every change is refused.
    token_for_reads : bool
        Whether reading needs the token too.
    hosts : frozenset of str
        Names that a request may be addressed to, besides addresses of the loopback interface; without ports.

    Raises
    ------
    SettingError
        When one of `hosts` is no name of a host, or the token cannot be one.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    read_only: bool = False
    token_for_reads: bool = False
    hosts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", checked_token(self.token))
        object.__setattr__(self, "hosts", checked_hosts(self.hosts))


def create_app(context: WatchedContext | None = None, settings: ServiceSettings | None = None) -> FastAPI:
    """Return the application over a context, by default the process's.

    It may be mounted under any prefix of a host's own application. Nothing runs until a request comes.
    """
    wanted = settings or ServiceSettings()
    watched = context or get_tuning_context()
    is_read_only = wanted.read_only or isinstance(watched, RecordedContext)
    runtime = LiveRuntime(watched, read_only=is_read_only, environ=os.environ)
    instance = instance_of(os.environ)
    state = State(
        runtime=runtime,
        hub=Hub(runtime, instance.id),
        jobs=Jobs(runtime),
        cursors=CursorKey(secrets.token_bytes(32)),
        instance=instance,
        ranks=Ranks(line_of(watched), runtime.worker),
        files=ResultFiles(watched),
        keys=IdempotencyKeys(),
        worker=runtime.worker,
    )
    app = FastAPI(
        title="TensorPlay",
        version=__version__,
        description="Watches and steers the tuning of matrix products in one process.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        openapi_tags=_TAGS,
        # They go to an absolute address, of what the request said of itself.
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        responses={
            "4XX": {"model": ProblemModel, "description": "A problem document."},
            500: {"model": ProblemModel, "description": "The service failed; the log of its process says why."},
        },
    )
    app.state.tensorplay = state
    app.state.tensorplay_login = login_code()
    app.state.tensorplay_sessions = sessions = Sessions()
    app.state.tensorplay_tokens = tokens = TokenCheck(wanted.token)
    add_handlers(app, as_page=problem_page)
    measured = (results, result_changes, explanation, rejections, untuned, files)
    for module in (settings_routes, *measured, found, jobs, events, ranks, rank_changes):
        app.include_router(module.router, prefix="/api/v1", dependencies=DECLARED_QUERY)
    # What their query may be, the rank says that is asked.
    app.include_router(ranks.parts, prefix="/api/v1")
    app.include_router(health.router)
    app.include_router(pages_router)
    rules = GuardRules(
        tokens=tokens,
        sessions=sessions,
        hosts=wanted.hosts,
        check_writable=state.check_writable,
        token_for_reads=wanted.token_for_reads,
        most_body_bytes=MOST_BODY_BYTES,
        cookie=cookie_of(instance.id),
        as_page=problem_page,
    )
    app.add_middleware(HeadRequests)
    app.add_middleware(Guard, rules=rules)
    # Around the guard: what it refuses has a name too.
    app.add_middleware(NamedRequests)
    correct_document(app)
    return app


def close_streams(app: FastAPI) -> None:
    """End the event streams of an application, with a goodbye, and refuse others from then on; from any thread.

    For a server of yours that stops: it waits for open streams, and a browser closes none by itself. `start()` does it
    by itself.
    """
    state: State = app.state.tensorplay
    state.hub.close()


def line_of(watched: WatchedContext) -> RankLine:
    """Return the way to the ranks of this job; what shows recorded files is none of them, wherever it was started."""
    placement = None if isinstance(watched, RecordedContext) else placement_of(os.environ, os.getppid())
    return RankLine(placement, folder_to_use(os.environ, os.geteuid()))
