"""Whatever waits for the lock of a file, in this process or for another one, the loop answers meanwhile."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.testing import ScriptedBackend, scripted_kernel

pytestmark = pytest.mark.filterwarnings("ignore::tensorplay.errors.ResultsFileWarning")

OP = "GemmTunableOp_Float32"
FAST, SLOW = scripted_kernel(2), scripted_kernel(3)
RESULTS, EXPLANATIONS = "tunableop_results0.csv", "tunableop_results0.explain.jsonl"
# What a stuck lock would cost each that waits for it, and a client that waits for /livez.
LONG_S, SHORT_S = 120.0, 20.0
_HOLDER = """
import sys
from contextlib import ExitStack
from filelock import FileLock
with ExitStack() as stack:
    for path in sys.argv[1:]:
        stack.enter_context(FileLock(path))
    print("held", flush=True)
    sys.stdin.read()
"""
Run = Callable[[int], str]
Sent = tuple[str, str, Any]


@pytest.fixture
def context(tmp_path: Path, backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[TuningContext]:
    """Writes that wait for a lock as long as somebody holds it, which is until the test has looked."""
    monkeypatch.setattr("tensorplay.runtime.device_results.GEMM_LOCK_WAIT_S", LONG_S)
    monkeypatch.setattr("tensorplay.runtime.device_explanations._LOCK_WAIT_S", LONG_S)
    made = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    yield made
    made.close()


@pytest.fixture
def many(service: Service) -> Iterator[httpx.Client]:
    """A client that may change things, and waits for as long as a lock is held."""
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=LONG_S) as made:
        yield made


@contextmanager
def held(folder: Path, *names: str) -> Iterator[None]:
    """Let another process hold the locks of files."""
    paths = [str(folder / f"{name}.lock") for name in names]
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield
        finally:
            holder.communicate()


def check_alive(service: Service) -> None:
    # A loop that waits for the lock does not answer before the lock is given back, which is after this.
    assert httpx.get(f"{service.url}livez", timeout=SHORT_S).status_code == 200


def result_ids(client: httpx.Client) -> dict[int, str]:
    return {each["m"]: each["id"] for each in client.get("api/v1/results").json()["items"]}


CHANGES: dict[str, Callable[[str], Sent]] = {
    "forget": lambda identity: ("DELETE", f"results/{identity}", None),
    "override": lambda identity: ("PUT", f"results/{identity}/override", {"kernel": SLOW}),
    "withdraw": lambda identity: ("DELETE", f"results/{identity}/override", None),
    "pin": lambda identity: ("PUT", f"results/{identity}/pin", None),
    "unpin": lambda identity: ("DELETE", f"results/{identity}/pin", None),
    "forget all": lambda _: ("DELETE", "results?confirm=all", None),
    "save": lambda _: ("POST", "files/save", None),
    "load": lambda _: ("POST", f"files/{RESULTS}/load", {}),
    "write": lambda _: ("POST", f"files/{RESULTS}/save", {}),
    "tune": lambda _: ("POST", "jobs", {"source": {"file": RESULTS}}),
    "retune": lambda identity: ("POST", f"rejections/{identity}/retune", None),
    "forget untuned": lambda _: ("DELETE", "untuned?confirm=all", None),
    "forget one untuned": lambda identity: ("DELETE", f"untuned/{identity}", None),
    "clear": lambda _: ("DELETE", "rejections", None),
    "switch": lambda _: ("PATCH", "switches", {"tuning": False}),
    "reresolve": lambda _: ("POST", "actions/reresolve", None),
}
WAITING = ("forget", "override", "withdraw", "forget all", "save", "write")


def sent(client: httpx.Client, change: Sent) -> httpx.Response:
    method, path, body = change
    return client.request(method, f"api/v1/{path}", json=body, headers={"If-Match": "*"})


@pytest.mark.parametrize("name", WAITING)
def test_a_change_that_waits_for_another_process_holds_nobody_up(
    name: str, service: Service, many: httpx.Client, context: TuningContext, run: Run, tmp_path: Path
) -> None:
    params = run(4)
    if name == "withdraw":
        context.override(OP, params, SLOW)
    change = CHANGES[name](result_ids(many)[4])
    with ThreadPoolExecutor() as pool, held(tmp_path, RESULTS, EXPLANATIONS):
        asked = pool.submit(sent, many, change)
        time.sleep(0.3)
        check_alive(service)
        assert not asked.done()
    assert asked.result().is_success, asked.result().text


def test_while_this_process_waits_for_another_no_route_and_no_page_holds_anybody_up(
    service: Service, many: httpx.Client, context: TuningContext, run: Run, tmp_path: Path
) -> None:
    run(4)
    given_up = run(5)
    identity = result_ids(many)[4]
    paths = [
        path.replace("{identity}", identity).replace("{name}", RESULTS)
        for path, methods in many.get("api/v1/openapi.json").json()["paths"].items()
        if "get" in methods and "{rank}" not in path and not path.endswith("/events")
    ]
    # A kind of order that is made of what files tell, and signatures whose winner files know.
    paths += [f"/api/v1/results?sort={key}" for key in ("gain", "-saved_ms", "m")]
    paths += [f"/api/v1/explain?op={OP}&params=taN_m{m}_n3_k5_bias0_dev0" for m in (4, 6)]
    paths += [f"/{page}" for page in ("", "results", f"results/{identity}", "untuned", "rejections", "jobs", "ranks")]
    paths += [f"/{page}" for page in ("settings", "events", "devices", "report")]
    assert {"/api/v1/results.csv", "/metrics", "/api/v1", f"/api/v1/results/{identity}"} < set(paths)
    waiting: dict[str, Future[httpx.Response]] = {}
    with ThreadPoolExecutor(100) as pool, held(tmp_path, RESULTS):
        # As a product of another thread that measures: it has the lock of the device, and waits for that of the file.
        writing = pool.submit(context.forget, OP, given_up)
        time.sleep(0.3)
        for path in paths:
            waiting[path] = pool.submit(many.get, path.removeprefix("/"), headers={"Accept": "text/html, */*"})
        for name, change in CHANGES.items():
            waiting[name] = pool.submit(sent, many, change(identity))
            time.sleep(0.05)
            check_alive(service)
        time.sleep(0.3)
        check_alive(service)
        assert not writing.done()
    assert writing.result()
    for what, asked in waiting.items():
        assert asked.result().status_code < 500, (what, asked.result().text)


def test_a_change_that_waited_is_not_made_on_a_state_that_its_client_has_not_seen(
    service: Service, many: httpx.Client, run: Run, tmp_path: Path
) -> None:
    for m in (4, 5):
        run(m)
    tag, ids = many.get("api/v1/results").headers["etag"], result_ids(many)

    def forget(m: int) -> httpx.Response:
        return many.delete(f"api/v1/results/{ids[m]}", headers={"If-Match": tag})

    with ThreadPoolExecutor() as pool, held(tmp_path, EXPLANATIONS):
        # They are dropped from memory once how they were chosen is: both were seen as they still are.
        first = pool.submit(forget, 4)
        time.sleep(0.3)
        second = pool.submit(forget, 5)
        time.sleep(0.3)
        check_alive(service)
    assert sorted(each.result().status_code for each in (first, second)) == [204, 412]
    assert len(result_ids(many)) == 1
