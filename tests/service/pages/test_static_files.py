import hashlib
import json
import re
from collections.abc import Callable
from importlib.resources import files

import httpx
import pytest

from tensorplay.service.pages.static_files import static_files, static_url

Ask = Callable[..., httpx.Response]
SVG = "http://www.w3.org/2000/svg"


def test_a_versioned_file_is_kept_for_ever_and_another_is_asked_about(ask: Ask) -> None:
    for name in static_files():
        for_ever = ask("/" + static_url(name))
        assert for_ever.status_code == 200
        assert "immutable" in for_ever.headers["Cache-Control"]
        assert for_ever.headers["X-Content-Type-Options"] == "nosniff"
    plain = ask("/static/app.css")
    assert plain.headers["Cache-Control"] == "no-cache"
    assert ask("/static/app.css", headers={"If-None-Match": plain.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize(
    "name",
    [
        "../__init__.py",
        "..%2f__init__.py",
        "%2e%2e/__init__.py",
        "vendor",
        "/etc/passwd",
        "app.css%00",
        "..\\app.css",
        "",
    ],
)
def test_no_other_file_is_reached(ask: Ask, name: str) -> None:
    assert ask(f"/static/{name}").status_code == 404


def test_the_vendored_files_are_those_that_were_checked() -> None:
    vendor = files("tensorplay.web") / "static" / "vendor"
    told = json.loads((vendor / "THIRD_PARTY.json").read_text())
    for each in told:
        folder = vendor / f"{each['name']}-{each['version']}"
        found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
        assert found == each["sha256"]
        assert "LICENSE" in found
    folders = {entry.name for entry in vendor.iterdir() if entry.is_dir()}
    assert folders == {f"{each['name']}-{each['version']}" for each in told}


def test_nothing_of_ours_names_another_host() -> None:
    web = files("tensorplay.web")
    own = [each for folder in ("templates", "static") for each in (web / folder).iterdir() if each.is_file()]
    assert len(own) > 20
    for each in own:
        text = each.read_text().replace(SVG, "")
        code = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
        assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]", code), each.name
        assert not re.search(r"\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
