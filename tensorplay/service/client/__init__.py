"""Clients of the REST API for programs that orchestrate: one that blocks, one for asyncio, with the same methods."""

from tensorplay.service.client.asynchronous import AsyncClient
from tensorplay.service.client.blocking import Client
from tensorplay.service.client.error import ServiceError
from tensorplay.service.client.event import Event

__all__ = ["AsyncClient", "Client", "Event", "ServiceError"]
