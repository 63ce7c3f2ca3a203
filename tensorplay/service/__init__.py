"""The service: a REST API and a live dashboard inside the process that multiplies, or over recorded files.

Needs the extra `web`: `pip install '.[web]'` in a clone. Nothing is imported or started before a name here is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorplay.service.autostart import HOW_TO_INSTALL

if TYPE_CHECKING:
    from tensorplay.service.app import close_streams, create_app
    from tensorplay.service.client import AsyncClient, Client, ServiceError
    from tensorplay.service.server import Service, start

__all__ = ["AsyncClient", "Client", "Service", "ServiceError", "close_streams", "create_app", "start"]

_HOMES = {
    "AsyncClient": "client",
    "Client": "client",
    "Service": "server",
    "ServiceError": "client",
    "close_streams": "app",
    "create_app": "app",
    "start": "server",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; {HOW_TO_INSTALL}", name=error.name, path=error.path) from error
