"""The service of a process whose environment asks for it, with no change of its code."""

import os

from tensorplay.errors import SettingError, SettingWarning
from tensorplay.locks import imported
from tensorplay.runtime.notice import warn

__all__ = ["serve_dashboard"]

TOKEN_VARIABLE = "TENSORPLAY_TOKEN"  # noqa: S105 - the name of a variable


def serve_dashboard(address: str) -> None:
    """Start the service at HOST:PORT; what stands in its way is warned of, and never raised: a product is waiting.

    All ranks of a job inherit the variable that asks for it. The first of a host listens there, the others on their
    private sockets.

    The token is that of the environment variable `TENSORPLAY_TOKEN`, made up unless given.
    """
    host, _, port = address.rpartition(":")
    try:
        server = imported("tensorplay.service.server")
    except ImportError as error:
        _warn(address, f"{error}; pip install 'tensorplay[web]'")
        return
    # A process that a rank itself has started, say to load data, inherits its place: the rank keeps it.
    if imported("tensorplay.service.presence").is_held_by(os.getppid(), os.environ):
        return
    try:
        server.start(host.strip("[]"), int(port), token=os.environ.get(TOKEN_VARIABLE) or None)
    except (OSError, RuntimeError, SettingError, ValueError) as error:
        # A port that another process has, say another rank of the same program; or a name that is none; or no thread.
        _warn(address, str(error))


def _warn(address: str, reason: str) -> None:
    warn(f"the dashboard cannot be served at {address}: {reason}", SettingWarning)
