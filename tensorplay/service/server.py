"""The embedded server: one daemon thread with a loop of its own, on a socket that is bound before it starts."""

import asyncio
import atexit
import html
import ipaddress
import os
import socket
import threading
import weakref
from typing import TYPE_CHECKING, Any, Self

import uvicorn

from tensorplay.errors import SettingError
from tensorplay.runtime.notice import logger
from tensorplay.runtime.process import get_tuning_context
from tensorplay.service.app import ServiceSettings, create_app
from tensorplay.service.watched import WatchedContext

if TYPE_CHECKING:
    from tensorplay.service.state import State

__all__ = ["Service", "start"]

_STOP_S = 5.0
_lock = threading.Lock()
_running: "weakref.WeakSet[Service]" = weakref.WeakSet()


class Service:
    """A server that runs; made by `start`.

    Attributes
    ----------
    url : str
        Where it answers.
    token : str
        What a change must show.
    """

    def __init__(self, context: WatchedContext, listener: socket.socket, settings: ServiceSettings) -> None:
        host, port = listener.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        self.token = settings.token
        self.context = context
        self._owner = os.getpid()
        self._socket = listener
        self._app = create_app(context, settings)
        self._state: State = self._app.state.tensorplay
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                log_config=None,
                access_log=False,
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=3,
                timeout_keep_alive=5,
                server_header=False,
                date_header=False,
                limit_concurrency=256,
                proxy_headers=False,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="tensorplay-service", daemon=True)
        self._thread.start()

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
        self._server.should_exit = True
        if self._thread is not threading.current_thread():
            self._thread.join(_STOP_S)
        self._socket.close()
        _running.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        url = html.escape(self.url)
        prefix = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
        proxied = f"{prefix}proxy/{self._socket.getsockname()[1]}/" if prefix and self.is_running else None
        links = [
            f'<a href="{each}" target="_blank">{each}</a>' for each in (url, proxied and html.escape(proxied)) if each
        ]
        return "TensorPlay: " + " or ".join(links)

    def __repr__(self) -> str:
        return f"<Service {self.url} {'running' if self.is_running else 'stopped'}>"

    def _serve(self) -> None:
        try:
            asyncio.run(self._server.serve(sockets=[self._socket]))
        except (OSError, RuntimeError, SystemExit) as error:
            logger.error("the service ended: %s", error)

    def _forget_in_child(self) -> None:
        # A child that keeps the sockets open would keep the port, and its parent's clients waiting.
        self._socket.close()
        for server in self._server.servers:
            for each in server.sockets:
                os.close(each.fileno())


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
    OSError
        When the port is taken.
    """
    chosen = context or get_tuning_context()
    with _lock:
        for service in list(_running):
            if service.context is chosen and service.is_running:
                return service
        is_public = not _is_loopback(host)
        if is_public and not token:
            raise SettingError(f"{host} can be reached by others: give a token, or listen on 127.0.0.1")
        settings = ServiceSettings(
            read_only=read_only,
            token_for_reads=is_public,
            hosts=hosts | ({host} if is_public else frozenset()),
            **({"token": token} if token else {}),
        )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=128)
        service = Service(chosen, listener, settings)
        _running.add(service)
    logger.info("the dashboard is at %s", service.url)
    return service


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
