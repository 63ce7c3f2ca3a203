"""What is said of bodies that do not fit: enough to mend them, and never much, whatever was sent."""

import json

import httpx
import pytest

from tensorplay.service import Service

WIDE = b",".join(b'{"o": 1}' for _ in range(9000))


@pytest.fixture
def headers(service: Service) -> dict[str, str]:
    return {"X-TensorPlay-Token": service.token, "Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "jobs", b'{"source": {"signatures": [' + WIDE + b"]}}"),
        ("PATCH", "switches", json.dumps({f"name{n}": 1 for n in range(30_000)}).encode()),
        ("PATCH", "switches", json.dumps({"name" * 100_000: 1}).encode()),
        ("PATCH", "budgets", json.dumps({"\u202e\x1b[31m\ud800" + "é" * 1000: 1}).encode()),
        ("PATCH", "settings", json.dumps({"values": [[]] * 10_000}).encode()),
    ],
    ids=["many items", "many names", "a long name", "a hostile name", "no object"],
)
def test_however_much_does_not_fit_the_answer_is_short(
    service: Service, headers: dict[str, str], method: str, path: str, body: bytes
) -> None:
    answer = httpx.request(method, f"{service.url}api/v1/{path}", content=body, headers=headers, timeout=20)
    assert answer.status_code == 422
    assert len(answer.content) < 100 * 400
    errors = answer.json()["errors"]
    assert 1 <= len(errors) <= 100
    for each in errors:
        assert all(part.isascii() and len(part) <= 64 * len("\\U00000000") for part in each["loc"])
