"""What somebody meets first: the name of the package, the extra that is missing, and the token nobody gave."""

import subprocess
import sys
from pathlib import Path

_DASHBOARD = """
import numpy as np, tensorplay
tensorplay.mm(np.ones((2, 3)), np.ones((3, 4)))
"""
_WITHOUT = "import sys; sys.modules['fastapi'] = None\n"


def ended(code: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=50, check=False)


def test_the_service_is_a_part_of_the_package_that_is_imported_when_it_is_used(tmp_path: Path) -> None:
    code = (
        "import sys, tensorplay\nprint('tensorplay.service' in sys.modules)\n"
        "with tensorplay.service.start() as service: print(service.is_running)"
    )
    done = ended(code, tmp_path)
    assert (done.stdout, done.stderr) == ("False\nTrue\n", "")


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    done = ended(_WITHOUT + "import tensorplay; tensorplay.service.start()", tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ") and "fastapi" in last
    assert last.endswith("run: pip install '.[web]' in a clone of TensorPlay")


def test_a_dashboard_without_a_token_of_the_user_shows_a_link_once(tmp_path: Path) -> None:
    code = _DASHBOARD + ("from tensorplay import service\nprint(service.start().token)\n")
    done = ended(code, tmp_path, TP_TUNABLEOP_DASHBOARD="127.0.0.1:0")
    (line,) = done.stderr.splitlines()
    assert "http://127.0.0.1:" in line and "/login?code=" in line and "TENSORPLAY_TOKEN" in line
    assert done.stdout.strip() not in line


def test_the_link_lets_a_browser_steer(tmp_path: Path) -> None:
    code = (
        "import logging, re, httpx\nlines = []\n"
        "handler = logging.Handler(); handler.emit = lambda record: lines.append(record.getMessage())\n"
        "logging.getLogger('tensorplay').addHandler(handler)\n" + _DASHBOARD + "from tensorplay import service\n"
        "browser = httpx.Client()\n"
        "print(browser.get(re.search('http[^ ]*', lines[-1])[0]).status_code)\n"
        "print(browser.patch(service.start().url + 'api/v1/switches', json={'tuning': False}).status_code)\n"
    )
    done = ended(code, tmp_path, TP_TUNABLEOP_DASHBOARD="127.0.0.1:0")
    assert (done.stdout, done.stderr) == ("200\n200\n", "")


def test_where_others_reach_it_no_link_is_shown(tmp_path: Path) -> None:
    environ = {"TP_TUNABLEOP_DASHBOARD": "0.0.0.0:0", "TENSORPLAY_TOKEN": "of-the-user"}
    done = ended(_DASHBOARD, tmp_path, **environ)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_token_that_is_none_is_a_warning_that_says_what_to_do(tmp_path: Path) -> None:
    environ = {"TP_TUNABLEOP_DASHBOARD": "127.0.0.1:0", "TENSORPLAY_TOKEN": "short"}
    done = ended(_DASHBOARD, tmp_path, **environ)
    assert done.returncode == 0
    assert "the dashboard cannot be served" in done.stderr and "allowed: 8 to 1024" in done.stderr


def test_who_has_no_token_is_told_where_it_comes_from(tmp_path: Path) -> None:
    code = (
        "import httpx, tensorplay\nwith tensorplay.service.start() as service:\n"
        "    print(httpx.patch(service.url + 'api/v1/switches', json={}).json()['detail'])"
    )
    assert "TENSORPLAY_TOKEN" in ended(code, tmp_path).stdout
