"""Statuses: whatever a route answers while the disk keeps everybody waiting, or the service stops, it has declared."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import worker
from tensorplay.service.app import ServiceSettings, close_streams, create_app

TOKEN = "a-token-of-this-test"  # noqa: S105 - of nothing else
_BODIES = {
    "/api/v1/jobs": {"source": {"file": "tunableop_untuned0.csv"}},
    "/api/v1/settings": {"values": {}},
    "/api/v1/settings/{name}": {"value": 0.1},
    "/api/v1/switches/{name}": {"value": True},
    "/api/v1/results/{identity}/override": {"kernel": "Default"},
}
_NAMES = {"/api/v1/switches/{name}": "tuning", "/api/v1/settings/{name}": "min_gain"}


@pytest.fixture
def app(context: TuningContext, run: Callable[[int], str]) -> Any:
    """An application that knows a winner, and has the file of it."""
    run(4)
    return create_app(context, ServiceSettings(token=TOKEN))


async def answers(app: Any) -> dict[tuple[str, str], tuple[int, set[str]]]:
    """Return what each route answers, and what it has declared."""
    found: dict[tuple[str, str], tuple[int, set[str]]] = {}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path, methods in app.openapi()["paths"].items():
            for method, operation in methods.items():
                if operation["operationId"] == "events_stream" and not app.state.tensorplay.hub.is_closed():
                    continue  # It would never end.
                name = _NAMES.get(path, "tunableop_results0.csv")
                address = path.replace("{name}", name).replace("{identity}", "0" * 16)
                address = address.replace("{rank}", "0").replace("{part}", "files")
                query = {
                    each["name"]: {"confirm": "all", "op": "GemmTunableOp_Float32"}.get(
                        each["name"], "taN_m4_n3_k5_bias0_dev0"
                    )
                    for each in operation.get("parameters", ())
                    if each["in"] == "query" and each.get("required")
                }
                headers = {"X-TensorPlay-Token": TOKEN, "If-Match": "*"}
                body = _BODIES.get(path, {}) if "requestBody" in operation else None
                # Each from another address: so many changes a second are not taken from one.
                transport.client = (f"10.0.0.{len(found)}", 1)
                answer = await client.request(method, address, params=query, headers=headers, json=body)
                found[method, path] = (answer.status_code, set(operation["responses"]))
    return found


def check(found: dict[tuple[str, str], tuple[int, set[str]]]) -> dict[tuple[str, str], int]:
    for route, (status, declared) in found.items():
        assert str(status) in declared or (400 <= status < 500 and "4XX" in declared), (route, status)
    return {route: status for route, (status, _) in found.items()}


@pytest.mark.parametrize("most", [0, 32])
def test_every_status_is_declared_while_the_disk_is_busy_and_while_it_is_not(
    app: Any, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(worker, "MOST_WAITING", most)
    found = check(asyncio.run(answers(app)))
    busy = {path for (_, path), status in found.items() if status == 503}
    expected = {"/api/v1/files", "/api/v1/files/save", "/api/v1/files/{name}", "/api/v1/jobs", "/api/v1/explain"}
    further = {"/api/v1/files/{name}/load", "/api/v1/files/{name}/save", "/api/v1/results"}
    assert busy == (set() if most else expected | further)


def test_every_status_is_declared_while_the_service_stops(app: Any) -> None:
    close_streams(app)
    found = check(asyncio.run(answers(app)))
    assert {path for (_, path), status in found.items() if status == 503} == {"/api/v1/events", "/readyz"}
