"""Ranks that die, hang or come back, and folders that somebody else has made."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

Eventually = Callable[[Callable[[], Any]], Any]
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def states(client: httpx.Client) -> list[str]:
    return [each["state"] for each in client.get("api/v1/ranks").json()["items"]]


def test_a_rank_that_was_killed_leaves_nothing_that_lasts_and_its_place_is_free(
    job: Any, eventually: Eventually
) -> None:
    first, second = job.start_all(2)
    left = job.sockets / "1.sock"
    with first.client() as client:
        assert eventually(lambda: states(client) == ["reachable", "reachable"])
        second.kill()
        assert left.exists()
        assert states(client) == ["reachable", "unreachable"]
        assert not left.exists()
        # What is no rank that is expected any more is forgotten.
        assert eventually(lambda: states(client) == ["reachable"])
        third = job.start(1)
        assert third.url == f"unix:{left}"
        assert eventually(lambda: states(client) == ["reachable", "reachable"])


def test_a_rank_takes_the_place_of_a_dead_one_and_never_that_of_a_living_one(job: Any) -> None:
    first = job.start(1)
    assert first.url
    other = job.start(1)
    code, errors = other.end()
    assert code == 1
    assert f"1.sock is served by the process {first.pid}" in errors
    first.kill()
    assert job.start(1).url == first.url


def test_a_rank_that_hangs_delays_a_page_once_and_comes_back(job: Any, eventually: Eventually) -> None:
    ranks = job.start_all(3)
    with ranks[0].client() as client:
        ranks[1].process.send_signal(signal.SIGSTOP)
        told = client.get("api/v1/ranks").json()["items"]
        assert [each["state"] for each in told] == ["reachable", "unreachable", "reachable"]
        assert "stopped" in told[1]["reason"]
        part = client.get("api/v1/ranks/1/stats")
        assert (part.status_code, part.json()["type"]) == (504, "urn:tensorplay:problem:rank-too-slow")
        assert "unreachable" in client.get("ranks", headers={"Accept": "text/html"}).text
        assert 'tensorplay_rank_up{rank="1"} 0.0' in client.get("metrics").text
        assert (job.sockets / "1.sock").exists()
        ranks[1].process.send_signal(signal.SIGCONT)
        assert eventually(lambda: states(client) == ["reachable"] * 3)


@pytest.mark.nightly
def test_a_hung_rank_with_no_room_for_a_connection_is_neither_waited_for_nor_taken_for_dead(
    job: Any, eventually: Eventually
) -> None:
    first, second = job.start_all(2)
    path = second.url.removeprefix("unix:")
    second.process.send_signal(signal.SIGSTOP)
    waiting: list[socket.socket] = []
    try:
        while len(waiting) < 1000:
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].settimeout(0.0)
            try:
                waiting[-1].connect(path)
            except BlockingIOError:
                break
        assert len(waiting) < 1000
        with first.client() as client:
            for _ in range(3):
                assert states(client) == ["reachable", "unreachable"]
        assert Path(path).exists()
    finally:
        for each in waiting:
            each.close()
        second.process.send_signal(signal.SIGCONT)
    with first.client() as client:
        assert eventually(lambda: states(client) == ["reachable", "reachable"])


def test_two_jobs_side_by_side_know_nothing_of_each_other(job: Any, make_job: Callable[..., Any]) -> None:
    other = make_job("other", job.folder.parent)
    ours, theirs = job.start_all(2), other.start_all(2)
    for ranks in (ours, theirs):
        with ranks[0].client() as client:
            told = client.get("api/v1/ranks").json()["items"]
        assert [each["summary"]["pid"] for each in told] == [rank.pid for rank in ranks]
    assert sorted(path.name for path in job.folder.iterdir() if path.is_dir()) == ["job", "other"]


def test_the_end_of_a_job_leaves_an_empty_folder(job: Any) -> None:
    ranks = job.start_all(2)
    for rank in ranks:
        assert rank.run("started.stop(), __import__('threading').active_count()") == "(None, 1)"
        assert rank.end() == (0, "")
    assert list(job.folder.iterdir()) == []


def test_a_process_that_does_not_stop_its_service_leaves_nothing_either(job: Any) -> None:
    for rank in job.start_all(2):
        assert rank.end() == (0, "")
    assert list(job.folder.iterdir()) == []


def test_a_forked_child_takes_nothing_away_from_its_rank(job: Any, eventually: Eventually) -> None:
    first, second = job.start_all(2)
    assert second.run("started.is_running, (lambda pid: os.waitpid(pid, 0)[1] if pid else sys.exit(7))(os.fork())") == (
        "(True, 1792)"
    )
    with first.client() as client:
        assert eventually(lambda: states(client) == ["reachable", "reachable"])
    assert len(list(job.folder.glob("*.json"))) == 2


def test_the_first_rank_serves_its_address_where_its_folder_is_refused(job: Any, eventually: Eventually) -> None:
    job.folder.mkdir()
    job.folder.chmod(0o755)
    program = "import warnings; warnings.simplefilter('always')\n" + job.start.__globals__["PROGRAM"]
    first = job.start(0, program)
    with first.client() as client:
        assert eventually(lambda: states(client) == ["reachable"])
    code, errors = first.end()
    assert code == 0
    assert "SettingWarning: rank 8 has no socket" in errors and "mode is 0755" in errors


def test_a_folder_that_was_opened_later_is_not_believed_any_more(job: Any) -> None:
    first, second = job.start_all(2)
    job.sockets.chmod(0o777)
    with first.client() as client:
        answer = client.get("api/v1/ranks/1/stats")
        assert answer.status_code in {404, 502}
        assert second.process.poll() is None


@AS_ROOT
def test_another_user_that_reaches_the_socket_is_hung_up_on(job: Any) -> None:
    second = job.start(1)
    path = second.url.removeprefix("unix:")
    for folder in (job.folder.parent, job.folder, job.sockets):
        folder.chmod(0o755)
    Path(path).chmod(0o666)
    for user, expected in ((12345, b""), (os.geteuid(), b"HTTP/1.1 200 OK")):
        receiver, sender = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setresuid(user, user, user)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                try:
                    client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    answer = client.recv(15)
                except OSError:
                    answer = b""
            os.write(sender, b"." + answer)
            os._exit(0)
        os.close(sender)
        assert os.read(receiver, 100) == b"." + expected
        os.close(receiver)
        os.waitpid(pid, 0)


def test_an_application_that_is_mounted_shows_the_ranks_too(
    job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastapi import FastAPI

    from tensorplay.runtime.context import TuningContext
    from tensorplay.service import create_app

    second = job.start(1)
    assert second.url
    for name, value in job.environ(0).items():
        monkeypatch.setenv(name, value)
    outer = FastAPI()
    outer.mount("/tools", create_app(TuningContext(environ={}, directory=tmp_path)))

    async def ask() -> tuple[Any, str, str]:
        transport = httpx.ASGITransport(app=outer)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            page = await client.get("/tools/ranks/1/results", headers={"Accept": "text/html"})
            listed = await client.get("/tools/api/v1/ranks")
            return listed.json(), page.text, (await client.get("/tools/ranks")).text

    told, results, page = asyncio.run(ask())
    assert [each["state"] for each in told["items"]] == ["reachable", "reachable"]
    assert [each["summary"]["pid"] for each in told["items"]] == [os.getpid(), second.pid]
    assert "This rank has no winner" in results and 'href="../../ranks"' in results
    assert 'href="./ranks/1/results"' in page


def test_hostile_text_of_a_rank_is_shown_as_text(job: Any) -> None:
    text = "<img src=x onerror=alert(1)>"
    entry = f"'GemmTunableOp_{text}', 'taN_m7_n8_k8_bias0_devcpu', '{text}' + sys.argv[0] + str(os.getpid()), 1.0"
    imported = "__import__('tensorplay.database.record', fromlist=['Entry']).Entry"
    device = "__import__('tensorplay.runtime.process', fromlist=['state']).state.context._device('cpu')"
    first, second = job.start_all(2)
    for rank in (first, second):
        assert rank.run(f"{device}.ensure_loaded(), {device}.results.put({imported}({entry}))")
    with first.client() as client:
        for path in ("ranks", "ranks/1/results"):
            page = client.get(path, headers={"Accept": "text/html"}).text
            assert "&lt;img src=x onerror=alert(1)&gt;" in page and "<img" not in page, path
