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

from tensorplay.errors import SettingError
from tensorplay.locks import ForkSafeLock
from tensorplay.runtime.notice import logger
from tensorplay.runtime.process import get_tuning_context
from tensorplay.service.app import ServiceSettings, create_app, line_of
from tensorplay.service.http_server import BACKLOG, HttpServer
from tensorplay.service.own_user import OwnUserDoor, OwnUserProtocol
from tensorplay.service.presence import Presence
from tensorplay.service.watched import WatchedContext

if TYPE_CHECKING:
    from tensorplay.service.state import State

__all__ = ["Service", "start"]

_STOP_S = 2.0
_LAST_PORT = 65535
_lock = ForkSafeLock()
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
        self._needs_token_to_read = settings.token_for_reads
        self.context = context
        self._owner = os.getpid()
        self._port = listener.getsockname()[1] if listener else None
        self._presence = presence
        self._app = create_app(context, settings)
        self._state: State = self._app.state.tensorplay
        self._servers: list[HttpServer] = []
        if listener is not None:
            self._servers.append(HttpServer(self._app, listener))
        if private is not None:
            self._servers.append(HttpServer(OwnUserDoor(self._app), private.listener, OwnUserProtocol))
        self._is_stopped = False
        self._end: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._thread = threading.Thread(target=self._serve, name="tensorplay-service", daemon=True)
        # Before there is a thread, so that a child of a fork lets go of the sockets at any moment.
        _running.add(self)
        self._thread.start()
        presence.announce(self._state, None if listener is None else self.url)

    @property
    def login_url(self) -> str:
        """Return an address that lets a browser in, to read and to change, once; a new one each time."""
        # Nobody can go to "every address"; this machine can go to its own.
        url = self.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        return f"{url}login?code={self._app.state.tensorplay_login.renew()}"

    @property
    def needs_token_to_read(self) -> bool:
        """Return whether nothing is shown without the token."""
        return self._needs_token_to_read

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
        self._state.runtime.leave()
        self._is_stopped = True
        if self._end is not None:
            loop, end = self._end
            # The loop may have ended by itself.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end.set)
        if self._thread is not threading.current_thread():
            self._thread.join(_STOP_S)
        # What was asked for before may still have been answered until now.
        self._state.runtime.close()
        self._close_listeners()
        self._presence.close()
        self._app.state.tensorplay_sessions.close_all()
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
        finally:
            self._close_listeners()

    async def _answer(self) -> None:
        end = asyncio.Event()
        self._end = asyncio.get_running_loop(), end
        # Who stopped it before this saw no event to set.
        if not self._is_stopped:
            await asyncio.gather(*(server.serve(end) for server in self._servers))

    def _close_listeners(self) -> None:
        for server in self._servers:
            server.listener.close()

    def _forget_in_child(self) -> None:
        # Nobody is told of what happens in a child: the loop that would tell is the parent's.
        self._state.runtime.leave()
        # A child that keeps the sockets open would keep the port, and its parent's clients waiting. What the loop of
        # the parent has open is replaced, not closed: its objects live on here, and would close the number once more.
        connections = [each for server in self._servers for each in server.connections]
        self._close_listeners()
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
        Names under which it may be addressed, as behind a proxy; without ports.

    Raises
    ------
    SettingError
        For an address that others reach, without a token, for a token that cannot be one, a port that is none, or for
        what is no name in `hosts`.
        Also on a rank that has nothing but its socket, when the folder of that may be another user's.
    OSError
        When the port is taken, or the place of the rank.
    """
    if not 0 <= port <= _LAST_PORT:
        raise SettingError(f"there is no port {port}; allowed: 1 to {_LAST_PORT}, or 0 for one that is free")
    chosen = context or get_tuning_context()
    with _lock:
        for service in list(_running):
            if service.context is chosen and service.is_running:
                return service
        line = line_of(chosen)
        has_address = line.placement is None or line.placement.is_first
        is_public = not _is_loopback(host)
        if has_address and is_public and not token:
            raise SettingError(
                f"{host} can be reached by others: give a token (TENSORPLAY_TOKEN, or `token` of start()), or listen "
                "on 127.0.0.1"
            )
        settings = ServiceSettings(
            read_only=read_only,
            token_for_reads=is_public,
            hosts=hosts | _own_names(host, is_public=is_public),
            **({} if token is None else {"token": token}),
        )
        presence = Presence(line)
        listener: socket.socket | None = None
        try:
            listener = _listener(host, port) if has_address else None
            service = Service(chosen, listener, settings, presence)
        except BaseException:
            presence.close()
            if listener is not None:
                listener.close()
            raise
    logger.info("the dashboard is at %s", service.url)
    return service


def _own_names(host: str, *, is_public: bool) -> frozenset[str]:
    # What is scoped to an interface, `fe80::1%eth0`, is addressed without that.
    return frozenset({host.partition("%")[0] or "0.0.0.0"}) if is_public else frozenset()  # noqa: S104 - what "" means


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    # Connections inherit it. asyncio sets it only on sockets that say they are TCP, which these do not; without it the
    # body of an answer waits 40 ms for the other side to confirm the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


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
