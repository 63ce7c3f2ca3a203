"""The clients on a job of real processes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tensorplay.service import AsyncClient, Client, ServiceError


@pytest.fixture(scope="module")
def ranks(make_job: Callable[..., Any], product: str) -> Any:
    started = make_job().start_all(2)
    for rank in started:
        rank.run(product)
    return started


def test_a_program_sees_all_ranks_and_changes_them(ranks: Any) -> None:
    with Client(ranks[0].url, ranks[0].token) as client:
        assert [each.summary.pid for each in client.ranks() if each.summary] == [rank.pid for rank in ranks]
        answers = client.set_on_ranks({"min_gain": 0.5})
        assert [(each.local_rank, each.status) for each in answers] == [(0, 200), (1, 200)]
        (answer,) = client.set_on_ranks({"min_gain": 0.25}, 1)
        assert (answer.local_rank, answer.body["min_gain"]["value"]) == (1, 0.25)
        assert [each.differs for each in client.ranks()] == [{"min_gain": 0.5}, {"min_gain": 0.25}]
        assert client.disagreements(limit=1) in ([], client.disagreements()[:1])
        with pytest.raises(ServiceError, match="no such rank"):
            client.set_on_ranks({"min_gain": 0.25}, 7)


def test_a_coroutine_does_the_same(ranks: Any) -> None:
    async def ask() -> tuple[list[int], list[int]]:
        async with AsyncClient(ranks[0].url, ranks[0].token) as client:
            listed = [each.local_rank for each in await client.ranks()]
            assert await client.disagreements() is not None
            return listed, [each.status for each in await client.set_on_ranks({"min_gain": 0.5})]

    assert asyncio.run(ask()) == ([0, 1], [200, 200])


def test_a_rank_is_spoken_to_through_its_socket_without_a_token(ranks: Any) -> None:
    async def ask() -> int | None:
        async with AsyncClient(ranks[1].url) as client:
            return (await client.instance()).local_rank

    with Client(ranks[1].url) as client:
        assert client.instance().pid == ranks[1].pid
        assert client.set("min_gain", 0.125).value == 0.125
    assert asyncio.run(ask()) == 1


def test_a_socket_that_is_not_there_is_an_error(tmp_path: Any) -> None:
    async def ask() -> bool:
        async with AsyncClient(f"unix:{tmp_path}/1.sock", retries=0) as client:
            with pytest.raises(ServiceError, match="cannot be reached"):
                await client.ranks()
            return await client.is_alive()

    assert not asyncio.run(ask())


def test_a_process_that_was_started_alone_has_no_ranks(service: Any) -> None:
    with Client(service.url, service.token) as client:
        assert client.ranks() == []
        assert client.disagreements() == []
        with pytest.raises(ServiceError, match="started with others"):
            client.set_on_ranks({"min_gain": 0.5})
