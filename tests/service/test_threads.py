"""What a request needs is done on the loop's thread, or on the one for files: no other is left behind."""

import threading
from collections.abc import Callable

import httpx
import pytest

from tensorplay.service import Service


@pytest.fixture
def others() -> set[threading.Thread]:
    """Threads of applications that other tests left to the garbage collector."""
    return set(threading.enumerate())


def test_no_request_leaves_a_thread_behind(
    others: set[threading.Thread], service: Service, client: httpx.Client, run: Callable[[int], str]
) -> None:
    run(4)
    paths = ["results?m_min=1", "results.csv", "results.jsonl", "rejections.csv", "untuned.csv", "settings", "files"]
    pages = [f"../../{path}" for path in ("results", "devices", "ranks", "report", "events", "metrics")]
    ranks = ["ranks", "ranks/own", "ranks/disagreements"]
    for path in (*paths, "files/tunableop_results0.csv", "stats", "jobs", *ranks, *pages):
        assert client.get(path).status_code == 200, path
    here = set(threading.enumerate()) - others
    names = {thread.name for thread in here}
    assert not {name for name in names if "AnyIO" in name or "asyncio" in name}
    assert {name for name in names if name.startswith("tensorplay-files")} == {"tensorplay-files-read"}
    service.stop()
    for thread in here:
        if thread.name.startswith("tensorplay-"):
            thread.join(5)
            assert not thread.is_alive()
