"""The embedded server: one daemon thread with a loop of its own, on sockets that are bound before it starts.

Among processes that were started together, the first of a host listens on an address and on a private Unix socket, and
the others on such a socket alone.
"""

import asyncio
import atexit
import html
import ipaddress
import os
import socket
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import uvicorn

from tensorplay.errors import SettingError
from tensorplay.runtime.notice import logger
from tensorplay.runtime.process import get_tuning_context
from tensorplay.service.app import ServiceSettings, create_app, line_of
from tensorplay.service.own_user import OwnUserDoor, OwnUserProtocol
from tensorplay.service.presence import Presence
from tensorplay.service.watched import WatchedContext

if TYPE_CHECKING:
    from tensorplay.service.state import State

__all__ = ["Service", "start"]

_STOP_S = 5.0
_BACKLOG = 128
_lock = threading.Lock()
_running: "weakref.WeakSet[Service]" = weakref.WeakSet()


class Service:
    """A server that runs; made by `start`.

    Attributes
    ----------
    url : str
        Where it answers: `http://...`, or `unix:` and the path of its socket on a rank that has nothing else.
    socket : str or None
        The path of its private socket, None when it is no rank of several.
    token : str
        What a change must show.
    """

    def __init__(
        self, context: WatchedContext, listener: socket.socket | None, settings: ServiceSettings, presence: Presence
    ) -> None:
        private = presence.socket
        self.socket = str(private.path) if private else None
        self.url = f"unix:{self.socket}" if listener is None else _url_of(listener)
        self.token = settings.token
        self.context = context
        self._owner = os.getpid()
        self._port = listener.getsockname()[1] if listener else None
        self._presence = presence
        self._app = create_app(context, settings)
        self._state: State = self._app.state.tensorplay
        self._servers: list[tuple[uvicorn.Server, socket.socket]] = []
        if listener is not None:
            self._servers.append((_server(self._app), listener))
        if private is not None:
            self._servers.append((_server(OwnUserDoor(self._app), http=OwnUserProtocol), private.listener))
        self._thread = threading.Thread(target=self._serve, name="tensorplay-service", daemon=True)
        self._thread.start()
        presence.announce(self._state, None if listener is None else self.url)

    @property
    def login_url(self) -> str:
        """Return an address that gives a browser the right to change things, once; a new one each time."""
        return f"{self.url}login?code={self._app.state.tensorplay_login.renew()}"

    @property
    def is_running(self) -> bool:
        """Return whether it answers, in this process."""
        return self._owner == os.getpid() and self._thread.is_alive() and not self._state.hub.is_closed()

    def stop(self) -> None:
        """End it: streams first, so that no client keeps it alive; again in vain."""
        if self._owner != os.getpid():
            return
        self._state.hub.close()
        self._state.jobs.close()
        self._state.runtime.close()
        for server, _ in self._servers:
            server.should_exit = True
        if self._thread is not threading.current_thread():
            self._thread.join(_STOP_S)
        for _, listener in self._servers:
            listener.close()
        self._presence.close()
        _running.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        url = html.escape(self.url)
        if self._port is None:
            return f"TensorPlay: <code>{url}</code>, which the first rank shows"
        prefix = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
        proxied = f"{prefix}proxy/{self._port}/" if prefix and self.is_running else None
        links = [
            f'<a href="{each}" target="_blank">{each}</a>' for each in (url, proxied and html.escape(proxied)) if each
        ]
        return "TensorPlay: " + " or ".join(links)

    def __repr__(self) -> str:
        return f"<Service {self.url} {'running' if self.is_running else 'stopped'}>"

    def _serve(self) -> None:
        try:
            asyncio.run(self._answer())
        except (OSError, RuntimeError, SystemExit) as error:
            logger.error("the service ended: %s", error)

    async def _answer(self) -> None:
        await asyncio.gather(*(server.serve(sockets=[listener]) for server, listener in self._servers))

    def _forget_in_child(self) -> None:
        # Nobody is told of what happens in a child: the loop that would tell is the parent's.
        self._state.runtime.leave()
        # A child that keeps the sockets open would keep the port, and its parent's clients waiting. What the loop of
        # the parent has open is replaced, not closed: its objects live on here, and would close the number once more.
        connections = [each for server, _ in self._servers for each in server.server_state.connections]
        for _, listener in self._servers:
            listener.close()
        with suppress(OSError), Path(os.devnull).open("rb") as nothing:
            for connection in connections:
                opened = connection.transport.get_extra_info("socket")
                if opened is not None and opened.fileno() >= 0:
                    os.dup2(nothing.fileno(), opened.fileno(), inheritable=False)


def start(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | None = None,
    read_only: bool = False,
    context: WatchedContext | None = None,
    hosts: frozenset[str] = frozenset(),
) -> Service:
    """Serve this process's tuning on an address, and return the handle; one that runs already is returned as it is.

    Of several processes that torchrun, SLURM or Open MPI started together, only the first of a host has an address.
    The others listen on a private Unix socket, where that one asks them; `host`, `port` and `token` mean nothing there.

    Parameters
    ----------
    host : str
        Address to listen on. Any but the loopback interface's needs a `token`, which reading then needs too.
    port : int
        0 for one that is free.
    token : str, optional
        What changes must show; made up unless given.
    read_only : bool
        Whether every change is refused.
    context : WatchedContext, optional
        The process's by default.
    hosts : frozenset of str
        Names under which it may be addressed, as behind a proxy.

    Raises
    ------
    SettingError
        For an address that others reach, without a token.
        Also on a rank that has nothing but its socket, when the folder of that may be another user's.
    OSError
        When the port is taken, or the place of the rank.
    """
    chosen = context or get_tuning_context()
    with _lock:
        for service in list(_running):
            if service.context is chosen and service.is_running:
                return service
        line = line_of(chosen)
        has_address = line.placement is None or line.placement.is_first
        is_public = not _is_loopback(host)
        if has_address and is_public and not token:
            raise SettingError(f"{host} can be reached by others: give a token, or listen on 127.0.0.1")
        settings = ServiceSettings(
            read_only=read_only,
            token_for_reads=is_public,
            hosts=hosts | ({host} if is_public else frozenset()),
            **({"token": token} if token else {}),
        )
        presence = Presence(line)
        try:
            service = Service(chosen, _listener(host, port) if has_address else None, settings, presence)
        except BaseException:
            presence.close()
            raise
        _running.add(service)
    logger.info("the dashboard is at %s", service.url)
    return service


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    # Connections inherit it. asyncio sets it only on sockets that say they are TCP, which these do not; without it the
    # body of an answer waits 40 ms for the other side to confirm the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _server(app: Any, http: Any = "auto") -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=http,
            log_config=None,
            access_log=False,
            ws="none",
            # It listens once more: what is stopped must not keep thousands waiting.
            backlog=_BACKLOG,
            lifespan="off",
            timeout_graceful_shutdown=3,
            timeout_keep_alive=5,
            server_header=False,
            date_header=False,
            limit_concurrency=256,
            proxy_headers=False,
        )
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _stop_all() -> None:
    for service in list(_running):
        service.stop()


def _after_fork() -> None:
    for service in list(_running):
        service._forget_in_child()
    _running.clear()


def _registered() -> Any:
    atexit.register(_stop_all)
    os.register_at_fork(after_in_child=_after_fork)


_registered()
