"""The reference of the REST API is the one that the OpenAPI document gives."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tensorplay.runtime.context import TuningContext
from tensorplay.service import AsyncClient, create_app, start

Docs = Callable[[str], str]
Names = Callable[[str], list[str]]
Rows = Callable[..., list[list[str]]]


def test_the_committed_reference_is_up_to_date(root: Path) -> None:
    command = [sys.executable, str(root / "scripts" / "make_rest_page.py"), "--check"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_reference_that_is_not_up_to_date_is_refused_and_mended(root: Path, tmp_path: Path) -> None:
    script, page = tmp_path / "scripts" / "make_rest_page.py", tmp_path / "docs" / "rest_api.md"
    for copy, source in ((script, "scripts/make_rest_page.py"), (page, "docs/rest_api.md")):
        copy.parent.mkdir()
        copy.write_text((root / source).read_text(encoding="utf-8"), encoding="utf-8")
    right = page.read_text(encoding="utf-8")
    page.write_text(right.replace("`GET /livez`", "`GET /alive`"), encoding="utf-8")
    ended = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "run .venv/bin/python scripts/make_rest_page.py" in ended.stderr
    subprocess.run([sys.executable, script], check=True)
    assert page.read_text(encoding="utf-8") == right


def test_every_operation_has_a_heading_of_its_own(docs: Docs, tmp_path: Path) -> None:
    document = create_app(TuningContext(environ={}, directory=tmp_path)).openapi()
    expected = [f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]
    headings = re.findall(r"^### `(.+)`$", docs("rest_api.md"), re.MULTILINE)
    assert sorted(headings) == sorted(expected)


def test_every_method_of_the_clients_is_on_the_page(docs: Docs, names: Names, rows: Rows) -> None:
    listed = {name.partition("(")[0] for row in rows(docs("service.md"), "Method") for name in names(row[0])}
    assert listed == {name for name in dir(AsyncClient) if not name.startswith("_")} - {"close"}


def test_every_argument_of_start_is_on_the_page(docs: Docs, names: Names, rows: Rows) -> None:
    listed = {name for row in rows(docs("service.md"), "`start(...)`") for name in names(row[0])}
    assert listed == set(start.__annotations__) - {"return"}
