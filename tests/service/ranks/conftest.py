"""Real processes of a job on this host, each as a launcher would start it, and what each answers."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

PRODUCT = "tensorplay.mm(np.ones((4, 8)), np.ones((8, 8))).shape"
# Each line is an expression, and is answered by one line.
PROGRAM = """
import os, sys
import numpy as np, tensorplay
from tensorplay import service
started = service.start(**OPTIONS)
print(started.url, started.token, flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""


class Rank:
    """One process."""

    def __init__(self, process: "subprocess.Popen[str]", number: int) -> None:
        self.process = process
        self.pid = process.pid
        self.number = number
        self._told: list[str] = []

    @property
    def url(self) -> str:
        return self._hello()[0]

    @property
    def token(self) -> str:
        return self._hello()[1]

    def run(self, expression: str) -> str:
        """Return what an expression is in that process."""
        self._hello()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def client(self) -> httpx.Client:
        """Return who speaks to this process itself, by its address or its socket."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if self.url.startswith("unix:"):
            transport = httpx.HTTPTransport(uds=self.url.removeprefix("unix:"))
            return httpx.Client(base_url="http://localhost/", transport=transport, timeout=30)
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> tuple[int, str]:
        """Let it end by itself, and return its exit code and what it said of errors."""
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors

    def _hello(self) -> list[str]:
        if not self._told:
            assert self.process.stdout is not None
            self._told = self.process.stdout.readline().split()
            assert self._told, self.process.communicate()[1]
        return self._told


class Job:
    """Processes with one folder and one name."""

    def __init__(self, folder: Path, name: str = "job") -> None:
        self.folder = folder / "run"
        self.name = name
        self._work = folder
        self.ranks: list[Rank] = []

    @property
    def sockets(self) -> Path:
        return self.folder / self.name

    def environ(self, number: int) -> dict[str, str]:
        return {
            "TENSORPLAY_RUNTIME_DIR": str(self.folder),
            "TORCHELASTIC_RUN_ID": self.name,
            "LOCAL_RANK": str(number),
            "RANK": str(8 + number),
            "WORLD_SIZE": "16",
            "TP_TUNABLEOP_ENABLED": "1",
            "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "1",
        }

    def start(
        self, number: int, program: str = PROGRAM, options: Mapping[str, object] | None = None, **environ: str
    ) -> Rank:
        work = self._work / f"{self.name}-{number}"
        work.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "error", "-c", f"OPTIONS = {dict(options or {})!r}\n{program}"],
            cwd=work,
            env=os.environ | self.environ(number) | environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ranks.append(Rank(process, number))
        return self.ranks[-1]

    def start_all(self, count: int, **environ: str) -> list[Rank]:
        """Start some at the same time, and return them once all answer."""
        started = [self.start(number, PROGRAM, None, **environ) for number in range(count)]
        for rank in started:
            assert rank.url
        return started

    def close(self) -> None:
        for rank in self.ranks:
            rank.process.kill()
            rank.process.communicate()


@pytest.fixture(scope="module")
def make_job() -> Iterator[Callable[..., Job]]:
    """Makes a job in a folder whose path is short, as the address of a socket must be; its processes are ended."""
    made: list[Job] = []
    folders: list[Path] = []

    def make(name: str = "job", folder: Path | None = None) -> Job:
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="tp-"))
            folders.append(folder)
        made.append(Job(folder, name))
        return made[-1]

    yield make
    for job in made:
        job.close()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def job(make_job: Callable[..., Job]) -> Iterator[Job]:
    made = make_job()
    yield made
    made.close()


@pytest.fixture(scope="session")
def product() -> str:
    """An expression that multiplies."""
    return PRODUCT


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Asks until the answer is true, and returns it."""

    def wait(question: Callable[[], Any]) -> Any:
        end = time.monotonic() + 30
        while not (answer := question()):
            assert time.monotonic() < end
            time.sleep(0.05)
        return answer

    return wait
