"""The images' own commands, run in a clean environment: what they install works, and is what was wanted."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.extensions import EXTENSIONS

ROOT = Path(__file__).parents[2]

# Where an image keeps things; here each goes below one folder.
_PLACE = re.compile(r"(?<![\w./])/(?=(?:opt|app|build|wheels|results)\b)")


def build(stages: list[list[tuple[str, str]]], root: Path) -> None:
    """Carry out what stages copy and run, but for making a user, which would change this machine."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    for stage in stages:
        folder = root / "build"
        for name, value in stage:
            if name == "COPY" and "--from" not in value:
                copy(value.split(), folder, root)
            elif name == "RUN" and "useradd" not in value:
                line = _PLACE.sub(f"{root}/", re.sub(r"--mount=\S+", "", value))
                folder.mkdir(parents=True, exist_ok=True)
                done = subprocess.run(
                    ["/bin/sh", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def copy(words: list[str], folder: Path, root: Path) -> None:
    *sources, target = (word for word in words if not word.startswith("--"))
    into = Path(_PLACE.sub(f"{root}/", target)) if target.startswith("/") else folder / target
    for source in sources:
        if (ROOT / source).is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / source, into, dirs_exist_ok=True, ignore=left_out)
        else:
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, into)


# Fetches packages, for the one with CUDA hundreds of megabytes.
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_commands_of_an_image_give_an_environment_in_which_its_worker_is_healthy(
    dockerfile: str, stages_of: Callable[[str], Any], run_image: Callable[..., Any], tmp_path: Path
) -> None:
    build(stages_of(dockerfile), tmp_path)
    programs = tmp_path / "opt" / "venv" / "bin"
    listed = subprocess.run(
        [programs / "python", "-m", "pip", "list", "--format", "json"], capture_output=True, text=True, check=True
    )
    installed = {each["name"] for each in json.loads(listed.stdout)}
    assert {"tensorplay", "fastapi"} <= installed
    assert not {"pytest", "ruff", "hypothesis"} & installed
    doctor = (str(programs / "tensorplay"), "doctor", "--json")
    examined = subprocess.run(doctor, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(examined.stdout)["machine"]["extensions"] == dict.fromkeys(EXTENSIONS, True)
    assert ("nvmath-python" in installed) == (dockerfile == "Dockerfile.cuda")
    code = {"programs": programs, "code": tmp_path / "app"}
    quick = {"TENSORPLAY_TOKEN": "t" * 8, "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "1"}
    with run_image(dockerfile, tmp_path, "--device", "cpu", environ=quick, **code) as worker:
        worker.wait_until_healthy()
        headers = {"Authorization": f"Bearer {quick['TENSORPLAY_TOKEN']}"}
        assert httpx.get(f"http://127.0.0.1:{worker.port}/metrics", headers=headers).status_code == 200
        page = httpx.get(f"http://127.0.0.1:{worker.port}/", headers=headers)
        assert "TensorPlay" in page.text, "templates and static files are in the wheel"
        worker.process.send_signal(signal.SIGTERM)
        _, errors = worker.process.communicate(timeout=30)
    assert (worker.process.returncode, errors) == (0, "")
