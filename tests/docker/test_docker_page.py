"""The page on containers names every file, service and port."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "docker.md").read_text(encoding="utf-8")
# Small helpers of the images, which nobody calls.
INTERNAL = {"entrypoint", "list_requirements.py"}


def test_every_file_is_listed() -> None:
    listed = set(re.findall(r"^\| `([\w.]+)` \|", PAGE.partition("## Build")[0], re.MULTILINE))
    assert listed | INTERNAL == {path.name for path in (ROOT / "docker").iterdir() if path.is_file()}


def test_every_service_is_listed_with_its_port(yaml_of: Callable[[str], Any]) -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| `http://([\d.:]+)/` \|", PAGE, re.MULTILINE))
    services = yaml_of("compose.yaml")["services"]
    assert listed == {name: service["ports"][0].rpartition(":")[0] for name, service in services.items()}


def test_every_image_that_is_run_is_one_that_is_built(yaml_of: Callable[[str], Any]) -> None:
    built = dict(re.findall(r"--file docker/(\S+) --tag (\S+) ", PAGE))
    assert {built[path.name] for path in (ROOT / "docker").glob("Dockerfile*")} == {"tensorplay:cpu", "tensorplay:cuda"}
    assert yaml_of("compose.yaml")["services"]["worker"]["image"] == built["Dockerfile"]
    assert yaml_of("compose.cuda.yaml")["services"]["worker"]["image"] == built["Dockerfile.cuda"]


def test_the_user_of_the_page_is_that_of_the_images() -> None:
    (user,) = re.findall(r"^\| User \| (\d+), not root", PAGE, re.MULTILINE)
    for path in (ROOT / "docker").glob("Dockerfile*"):
        assert f"USER {user}:{user}" in path.read_text(encoding="utf-8")
