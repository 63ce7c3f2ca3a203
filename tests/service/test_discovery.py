"""Records of what runs: whole, private, without a secret, and gone with their process."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import SettingError
from tensorplay.service import Service, discovery
from tensorplay.service.discovery import Record, discovered, read_records, write_record

RECORD = Record(
    id="0123456789abcdef",
    pid=os.getpid(),
    started_at="2026-11-30T12:00:00+00:00",
    url="http://127.0.0.1:1/",
    socket=None,
    serves="process",
    job=None,
    rank=None,
    local_rank=None,
    world_size=None,
    devices=["cpu"],
    version="1",
    command="train.py",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "run"
    monkeypatch.setenv("TENSORPLAY_RUNTIME_DIR", str(made))
    return made


@pytest.fixture
def found() -> Callable[[], list[Any]]:
    return lambda: discovered(os.environ, os.geteuid())


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a service that is there have all the time to answer, whatever else this machine does."""
    monkeypatch.setattr(discovery, "_ASK_S", 40.0)


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address that is connected to and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def test_nothing_runs_where_there_is_no_folder(folder: Path, found: Callable[[], list[Any]]) -> None:
    assert found() == []
    assert not folder.exists()


@pytest.mark.usefixtures("patient")
def test_a_service_is_found_until_it_stops(
    folder: Path, serve: Callable[..., Service], run: Callable[[int], str], found: Callable[[], list[Any]]
) -> None:
    service = serve(read_only=True)
    run(4)
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert service.token not in path.read_text()
    (one,) = found()
    assert (one.record.url, one.record.pid, one.record.serves) == (service.url, os.getpid(), "process")
    # What the process met since it left its record.
    assert one.is_answering and one.record.devices == ["0"]
    service.stop()
    assert list(folder.iterdir()) == []
    assert found() == []


@pytest.mark.usefixtures("patient")
def test_a_service_that_wants_its_token_is_found_too(
    folder: Path, serve: Callable[..., Service], found: Callable[[], list[Any]]
) -> None:
    serve(host="0.0.0.0", token="a-secret")  # noqa: S104, S106 - a test
    (one,) = found()
    assert one.is_answering
    assert "a-secret" not in next(folder.iterdir()).read_text()


def test_the_record_of_a_process_that_was_killed_is_removed(folder: Path, found: Callable[[], list[Any]]) -> None:
    code = "import os, signal\nfrom tensorplay import service\nservice.start()\nos.kill(os.getpid(), signal.SIGKILL)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder.parent, timeout=50, check=False)
    assert ended.returncode == -9
    assert len(list(folder.iterdir())) == 1
    assert found() == []
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("patient")
def test_a_record_is_not_taken_for_the_service_that_has_its_address_by_now(
    folder: Path, service: Service, found: Callable[[], list[Any]]
) -> None:
    old = write_record(folder, RECORD.model_copy(update={"url": service.url}))
    (one,) = found()
    assert one.record.id != RECORD.id
    assert not old.exists()


def test_a_process_that_lives_and_does_not_answer_is_told_as_such(
    folder: Path, deaf: str, found: Callable[[], list[Any]]
) -> None:
    path = write_record(folder, RECORD.model_copy(update={"url": deaf}))
    (one,) = found()
    assert (one.record.pid, one.is_answering) == (os.getpid(), False)
    assert path.exists()


def test_what_listens_in_the_place_of_a_dead_process_is_not_it(
    folder: Path, deaf: str, found: Callable[[], list[Any]]
) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    write_record(folder, RECORD.model_copy(update={"url": deaf, "pid": child.pid}))
    assert found() == []


@pytest.fixture
def liar() -> Iterator[Callable[[Iterator[bytes]], str]]:
    """Starts what answers each request with some bytes, as long as somebody reads them."""
    with ExitStack() as stack:

        def begin(parts: Iterator[bytes]) -> str:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def answer() -> None:
                with suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
                        for part in parts:
                            connection.sendall(part)

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            return f"http://127.0.0.1:{listener.getsockname()[1]}/"

        yield begin


def _dripping() -> Iterator[bytes]:
    while True:
        time.sleep(0.2)
        yield b" "


@pytest.mark.parametrize(
    "parts",
    [
        iter([b'{"id": []}']), iter([b'{"hello": "world"}']), iter([b'{"id": null}']), iter([b"[" * 100_000]),
        repeat(b" " * 65536), _dripping(),
    ],
    ids=["list", "other", "null", "deep", "endless", "dripping"],
)  # fmt: skip
def test_another_program_that_has_the_address_of_a_dead_process_is_not_it(
    folder: Path, liar: Callable[[Iterator[bytes]], str], found: Callable[[], list[Any]], parts: Iterator[bytes]
) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    path = write_record(folder, RECORD.model_copy(update={"url": liar(parts), "pid": child.pid}))
    assert found() == []
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"url": "file:///etc/passwd"}, {"url": "http://a@b/"}, {"url": "http://127.0.0.1:1/x"}, {"url": 5},
        {"socket": "../../x.sock"}, {"socket": "/etc/x/1.sock"}, {"socket": "a/b.sock"}, {"pid": 0}, {"pid": 2**40},
        {"pid": -1}, {"id": "x"}, {"serves": "all"}, {"devices": "cpu"}, {"version": "1" * 200},
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_left_alone(folder: Path, change: dict[str, object]) -> None:
    path = write_record(folder, RECORD)
    path.write_text(json.dumps(json.loads(RECORD.model_dump_json()) | change))
    assert read_records(folder) == {}
    assert path.exists()


def test_what_is_no_file_is_not_read(folder: Path) -> None:
    path = write_record(folder, RECORD)
    assert read_records(folder) == {path: RECORD}
    (folder / "a.json").symlink_to(path)
    (folder / "b.json").mkdir()
    os.mkfifo(folder / "c.json")
    (folder / "d.json").write_bytes(b"\xff" * 100_000)
    (folder / "e.json").write_text("")
    assert read_records(folder) == {path: RECORD}


def test_a_record_is_not_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    path = write_record(folder, RECORD)
    path.unlink()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.with_suffix(".new").symlink_to(victim)
    with suppress(OSError):
        write_record(folder, RECORD)
    assert victim.read_text() == "precious"


def test_a_folder_of_somebody_else_is_not_read(folder: Path, found: Callable[[], list[Any]]) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SettingError, match="its mode is 0777"):
        found()


def test_who_starts_takes_away_what_the_killed_left(
    folder: Path, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os, signal\nfrom tensorplay import service\nservice.start()\nos.kill(os.getpid(), signal.SIGKILL)"
    environ = os.environ | {"LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "old"}
    # A short path, as a socket must have.
    with tempfile.TemporaryDirectory() as name:
        short = Path(name) / "run"
        environ["TENSORPLAY_RUNTIME_DIR"] = str(short)
        subprocess.run([sys.executable, "-c", code], cwd=name, env=environ, timeout=50, check=False)
        assert len(list(short.glob("*.json"))) == 1
        assert (short / "old" / "1.sock").exists()
        monkeypatch.setenv("TENSORPLAY_RUNTIME_DIR", str(short))
        service = serve()
        assert [path.name.partition("-")[0] for path in short.iterdir()] == [str(os.getpid())]
        service.stop()


def test_a_place_that_is_not_used_and_is_another_users_hides_nothing(
    monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Service], tmp_path: Path
) -> None:
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    own.mkdir(mode=0o700)
    foreign.mkdir()
    foreign.chmod(0o777)
    monkeypatch.setattr("tensorplay.service.discovery.folders_to_read", lambda *_: [own, foreign])
    write_record(own, RECORD.model_copy(update={"url": serve().url, "id": serve()._state.instance.id}))
    assert [each.record.pid for each in discovered(os.environ, os.geteuid())] == [os.getpid()]


def test_a_service_starts_where_no_record_can_be_left(folder: Path, serve: Callable[..., Service]) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    service = serve()
    assert service.is_running
    assert list(folder.iterdir()) == []
