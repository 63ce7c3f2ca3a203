"""The files of the devices: what is offered of them is what the service takes."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest

from tensorplay.gemm import parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import start
from tensorplay.service.pages.form_call import read_call
from tensorplay.testing import ScriptedBackend

NAMES = ["save?.csv", "save#x.csv", "my results.csv", "é.csv", "a%2fb.csv", ".x.csv", "\"'><b>.csv"]


@pytest.fixture
def page(request: pytest.FixtureRequest, tmp_path: Path, backend: ScriptedBackend) -> Iterator[httpx.Response]:
    """The page of a process whose winners go to a file of some name."""
    environ = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_FILENAME": str(tmp_path / request.param)}
    context = TuningContext(environ=environ, directory=tmp_path, backends={"0": backend})
    context.resolve(parse_signature("GemmTunableOp_Float32", "taN_m1_n3_k5_bias0_dev0"), backend)
    context.save_results("0", str(tmp_path / "kept.csv"))
    with start(context=context) as service:
        yield httpx.get(service.url + "devices", headers={"Accept": "text/html"})
    context.close()


@pytest.mark.parametrize("page", NAMES, indirect=True)
def test_a_file_that_no_address_can_name_has_no_buttons_that_would_do_something_else(page: httpx.Response) -> None:
    paths = [read_call(unescape(each)).path for each in re.findall(r"name=\"call\" value='([^']*)'", page.text)]
    files = {each for each in paths if each.startswith("files/")}
    assert files == {"files/kept.csv/load", "files/kept.csv/save", "files/{name}/save", "files/save"}
    assert re.findall(r'href="\./api/v1/files/([^"]*)"', page.text) == ["kept.csv"]
    assert page.text.count("The service takes no such name") == 1


@pytest.mark.parametrize("page", ["winners.csv"], indirect=True)
def test_the_buttons_of_a_file_say_its_name(page: httpx.Response) -> None:
    for name in ("winners0.csv", "kept.csv"):
        for label in ("Load", "Load over", "Save"):
            assert f'aria-label="{label} {name}"' in page.text
