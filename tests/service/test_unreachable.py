"""A service that does not answer: the error says which, and never the password that its address may hold."""

import asyncio

import httpx
import pytest

from tensorplay.service import AsyncClient, Client, ServiceError

PLACES = [
    ("http://me:secret@127.0.0.1:1/p", "http://127.0.0.1:1/p"),
    ("https://ml.example/tools/", "https://ml.example/tools/"),
    ("http://[::1]:8787/", "http://[::1]:8787/"),
    ("unix:/nowhere/at-all.sock", "unix:/nowhere/at-all.sock"),
]


def refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def come_late(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("", request=request)


@pytest.mark.parametrize(("url", "place"), PLACES)
def test_who_does_not_answer_is_said_without_a_password(url: str, place: str) -> None:
    with Client(url, retries=0, transport=httpx.MockTransport(refuse)) as client, pytest.raises(ServiceError) as caught:
        client.stats()
    assert str(caught.value) == f"the service cannot be reached at {place}: refused (unreachable)"

    async def ask() -> None:
        async with AsyncClient(url, retries=0, transport=httpx.MockTransport(refuse)) as client:
            await client.stats()

    with pytest.raises(ServiceError) as also:
        asyncio.run(ask())
    assert str(also.value) == str(caught.value)


@pytest.mark.parametrize(("url", "place"), PLACES)
def test_who_takes_too_long_is_said_too(url: str, place: str) -> None:
    transport = httpx.MockTransport(come_late)
    with Client(url, retries=0, transport=transport) as client, pytest.raises(ServiceError) as caught:
        client.stats()
    assert caught.value.detail == f"the service at {place} did not answer api/v1/stats in time; give a longer `timeout`"
