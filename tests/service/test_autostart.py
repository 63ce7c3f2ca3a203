"""The service that the environment asks for: from the first product on, and never in its way."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tensorplay.errors import SettingError
from tensorplay.runtime.settings_table import setting_of

_PRODUCT = """
import sys
import numpy as np, tensorplay
assert "tensorplay.service" not in sys.modules
assert tensorplay.mm(np.ones((2, 3)), np.ones((3, 4))).shape == (2, 4)
"""
_ASK = """
import httpx
from tensorplay import service
started = service.start()
print(started.token, httpx.get(started.url + "livez").status_code)
"""
TOKEN = {"TENSORPLAY_TOKEN": "of-the-user"}
_WITHOUT = "import sys; sys.modules['fastapi'] = None\n"


def ended(code: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=50, check=False)


def test_it_serves_from_the_first_product_on(tmp_path: Path) -> None:
    done = ended(_PRODUCT + _ASK, tmp_path, TP_TUNABLEOP_DASHBOARD="127.0.0.1:0", **TOKEN)
    assert (done.returncode, done.stdout, done.stderr) == (0, "of-the-user 200\n", "")


def test_without_the_variable_nothing_of_it_is_imported(tmp_path: Path) -> None:
    code = _PRODUCT + "print('tensorplay.service' in sys.modules, 'fastapi' in sys.modules)"
    assert ended(code, tmp_path).stdout == "False False\n"


@pytest.mark.parametrize(
    ("address", "before", "reason"),
    [
        ("127.0.0.1:0", _WITHOUT, "pip install '.[web]' in a clone"),
        ("0.0.0.0:0", "", "give a token (TENSORPLAY_TOKEN"),
        ("a..b:1", "", ""),
        ("192.0.2.1:1", "import os; os.environ['TENSORPLAY_TOKEN'] = 't' * 8\n", "ssign"),
    ],
)
def test_what_stands_in_its_way_is_a_warning(address: str, before: str, reason: str, tmp_path: Path) -> None:
    done = ended(before + _PRODUCT + "print('on')", tmp_path, TP_TUNABLEOP_DASHBOARD=address)
    assert (done.returncode, done.stdout) == (0, "on\n"), done.stderr
    assert f"SettingWarning: the dashboard cannot be served at {address}: " in done.stderr
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


_ASK_NAMED = """
import httpx
from tensorplay import service
started = service.start()
url = started.url.replace("0.0.0.0", "127.0.0.1") + "metrics"
headers = {"Authorization": "Bearer of-the-user"}
for name in ("worker", "ML.example:80", "other.example"):
    print(httpx.get(url, headers={**headers, "Host": name}).status_code)
"""


def test_the_names_of_a_public_address_are_those_of_the_environment(tmp_path: Path) -> None:
    environ = {**TOKEN, "TP_TUNABLEOP_DASHBOARD": "0.0.0.0:0", "TENSORPLAY_HOSTS": "worker,ml.example"}
    done = ended(_PRODUCT + _ASK_NAMED, tmp_path, **environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "200\n200\n403\n", "")


def test_a_name_of_the_environment_that_is_none_is_a_warning(tmp_path: Path) -> None:
    environ = {"TP_TUNABLEOP_DASHBOARD": "127.0.0.1:0", "TENSORPLAY_HOSTS": "worker:80"}
    done = ended(_PRODUCT + "print('on')", tmp_path, **environ)
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert "TENSORPLAY_HOSTS: 'worker:80' is no name of a host" in done.stderr


def test_a_port_that_is_taken_is_a_warning(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = ended(_PRODUCT + "print('on')", tmp_path, TP_TUNABLEOP_DASHBOARD=address)
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert "in use" in done.stderr
    assert "; choose another port, or 0 for one that is free; `tensorplay serve --discover` lists" in done.stderr


@pytest.mark.parametrize("given", ["", "127.0.0.1:8787", "localhost:0", "[::1]:65535", "worker-3.example:80"])
def test_an_address_is_a_host_and_a_port(given: str) -> None:
    assert setting_of("dashboard").check(given) == given


@pytest.mark.parametrize(
    "given", ["8787", ":80", "a:", "a:65536", "a:-1", "::1:80", "a b:1", "a:1\n", "ä:1", "a:1/", 8787, None]
)
def test_what_is_no_address_is_refused(given: object) -> None:
    with pytest.raises(SettingError, match="HOST:PORT, such as"):
        setting_of("dashboard").check(given)


_TOLD = """
from tensorplay import service
started = service.start()
print(started.url, started.token)
"""


def test_without_a_token_the_log_says_how_a_browser_and_how_a_program_gets_in(tmp_path: Path) -> None:
    done = ended(_PRODUCT + _TOLD, tmp_path, TP_TUNABLEOP_DASHBOARD="127.0.0.1:0")
    url, token = done.stdout.split()
    assert f"the dashboard lets one browser in, once: {url}login?code=" in done.stderr
    assert "(for tensorplay ctl and other programs, start this one with TENSORPLAY_TOKEN set" in done.stderr
    assert token not in done.stderr
