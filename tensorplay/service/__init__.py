"""The service: a REST API and a live dashboard inside the process that multiplies, or over recorded files.

Needs `pip install tensorplay[web]`. Nothing is imported, and nothing started, before a name here is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorplay.service.app import create_app
    from tensorplay.service.client import AsyncClient, Client, ServiceError
    from tensorplay.service.server import Service, start

__all__ = ["AsyncClient", "Client", "Service", "ServiceError", "create_app", "start"]

_HOMES = {
    "AsyncClient": "client",
    "Client": "client",
    "Service": "server",
    "ServiceError": "client",
    "create_app": "app",
    "start": "server",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
