"""The service of a process whose environment asks for it, with no change of its code."""

import errno
import os

from tensorplay.errors import SettingError, SettingWarning
from tensorplay.locks import imported
from tensorplay.runtime.notice import logger, warn

__all__ = ["HOW_TO_INSTALL", "TOKEN_VARIABLE", "serve_dashboard"]

_HOW_TO_FREE = (
    "choose another port, or 0 for one that is free; `tensorplay serve --discover` lists what serves here already"
)
HOW_TO_INSTALL = "run: pip install '.[web]' in a clone of TensorPlay"
TOKEN_VARIABLE = "TENSORPLAY_TOKEN"  # noqa: S105 - the name of a variable


def serve_dashboard(address: str) -> None:
    """Start the service at HOST:PORT; what stands in its way is warned of, and never raised: a product is waiting.

    All ranks of a job inherit the variable that asks for it. The first of a host listens there, the others on their
    private sockets.

    The token is that of the environment variable `TENSORPLAY_TOKEN`; unless given one is made up, and a link that lets
    one browser in is logged, with what programs need. `TENSORPLAY_HOSTS` holds the names that it is reached by, with
    commas between.
    """
    host, _, port = address.rpartition(":")
    try:
        server = imported("tensorplay.service.server")
    except ImportError as error:
        _warn(address, f"{error}; {HOW_TO_INSTALL}")
        return
    # A process that a rank itself has started, say to load data, inherits its place: the rank keeps it.
    if imported("tensorplay.service.presence").is_held_by(os.getppid(), os.environ):
        return
    token = os.environ.get(TOKEN_VARIABLE) or None
    try:
        hosts = imported("tensorplay.service.host_names").hosts_of(os.environ)
        service = server.start(host.strip("[]"), int(port), token=token, hosts=hosts)
    except OSError as error:
        # A port that another process has, say another rank of the same program.
        _warn(address, f"{error}; {_HOW_TO_FREE}" if error.errno == errno.EADDRINUSE else str(error))
        return
    except (RuntimeError, SettingError, ValueError) as error:
        # A name that is none, no token for an address that others reach; or no thread.
        _warn(address, str(error))
        return
    # Nobody has been told the token that was made up. The link works once, and only on this machine.
    if token is None and service.url.startswith("http:") and not service.needs_token_to_read:
        # A warning, since without a configuration of logging nobody sees less.
        logger.warning(
            "the dashboard lets one browser in, once: %s (for tensorplay ctl and other programs, start this "
            "one with %s set to a token of yours)",
            service.login_url,
            TOKEN_VARIABLE,
        )


def _warn(address: str, reason: str) -> None:
    warn(f"the dashboard cannot be served at {address}: {reason}", SettingWarning)
