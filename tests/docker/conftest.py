"""The files of docker/, taken apart, and what they would start, started here without an engine."""

import io
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from dockerfile_parse import DockerfileParser
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
PORT = 8787

Stage = list[tuple[str, str]]


def _stages(name: str) -> list[Stage]:
    parser = DockerfileParser(fileobj=io.BytesIO((DOCKER / name).read_bytes()))
    stages: list[Stage] = []
    for each in parser.structure:
        if each["instruction"] == "FROM":
            stages.append([])
        if each["instruction"] != "COMMENT":
            stages[-1].append((each["instruction"], each["value"]))
    return stages


def _value(stage: Stage, name: str) -> str:
    (value,) = (value for instruction, value in stage if instruction == name)
    return value


def _environ(stage: Stage) -> dict[str, str]:
    return dict(pair.split("=", 1) for name, value in stage if name == "ENV" for pair in shlex.split(value))


@pytest.fixture(params=["Dockerfile", "Dockerfile.cuda"])
def dockerfile(request: pytest.FixtureRequest) -> str:
    """Return the name of each Dockerfile in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def stages_of() -> Callable[[str], list[Stage]]:
    """Return what gives the stages of a Dockerfile, each a list of instructions and their values."""
    return _stages


@pytest.fixture(scope="session")
def value_of() -> Callable[[Stage, str], str]:
    """Return what gives the value of an instruction that a stage has once."""
    return _value


@pytest.fixture(scope="session")
def environ_of() -> Callable[[Stage], dict[str, str]]:
    """Return what gives the environment that a stage sets."""
    return _environ


@pytest.fixture(scope="session")
def yaml_of() -> Callable[[str], Any]:
    """Return what gives the content of a YAML file of docker/."""
    return lambda name: YAML(typ="safe").load(DOCKER / name)


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """Return what finds a program of the development group, or skips loudly."""

    def find(name: str) -> str:
        found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
        if found is None:
            pytest.skip(f"no {name} here: docker/ is NOT checked by it (pip install --group dev)")
        return found

    return find


class Running(NamedTuple):
    """What an image would run, running; `check_health` is the image's own check."""

    process: "subprocess.Popen[str]"
    port: int
    results: Path
    check_health: Callable[[], int]

    def wait_until_healthy(self) -> None:
        """Check as an engine would, until it is healthy."""
        for _ in range(120):
            if self.check_health() == 0:
                return
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.25)
        raise AssertionError("it did not become healthy")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture(scope="session")
def run_image() -> Callable[..., Any]:
    """Return what starts the entry of an image with the paths and the port of this machine."""

    @contextmanager
    def run(
        name: str,
        folder: Path,
        *extra: str,
        command: Sequence[str] = (),
        environ: Mapping[str, str] = {},
        programs: Path = Path(sys.executable).parent,
        code: Path = DOCKER,
    ) -> Iterator[Running]:
        stage, port, results = _stages(name)[-1], _free_port(), folder / "results"
        results.mkdir(exist_ok=True)
        places = {
            "/opt/venv/bin": str(programs),
            "/app": str(code),
            "/results": str(results),
            "$PATH": os.environ["PATH"],
            str(PORT): str(port),
        }

        def here(text: str) -> str:
            for inside, outside in places.items():
                text = text.replace(inside, outside)
            return text

        variables = {key: here(value) for key, value in _environ(stage).items()} | dict(environ)
        entry = json.loads(_value(stage, "ENTRYPOINT"))
        started = [here(word) for word in (*entry, *(command or json.loads(_value(stage, "CMD"))), *extra)]
        check = [here(word) for word in json.loads(_value(stage, "HEALTHCHECK").partition("CMD ")[2])]

        def check_health() -> int:
            return subprocess.run(check, env=variables, cwd=results, capture_output=True, check=False).returncode

        process = subprocess.Popen(
            started, env=variables, cwd=results, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            yield Running(process, port, results, check_health)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    return run
