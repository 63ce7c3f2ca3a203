"""The variable that all ranks inherit: the first one binds the address, and nobody else warns."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

PROGRAM = """
import sys
import numpy as np, tensorplay
assert tensorplay.mm(np.ones((2, 3)), np.ones((3, 4))).shape == (2, 4)
from tensorplay import service
started = service.start()
print(started.url, started.token, flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""
MULTIPLY = "import numpy as np, tensorplay; tensorplay.mm(np.ones((2, 3)), np.ones((3, 4)))"


def test_only_the_first_rank_binds_the_address(job: Any) -> None:
    address = {"TP_TUNABLEOP_DASHBOARD": "127.0.0.1:0", "TENSORPLAY_TOKEN": "of-the-user"}
    ranks = [job.start(number, PROGRAM, **address) for number in range(2)]
    assert [rank.url.partition(":")[0] for rank in ranks] == ["http", "unix"]
    assert [rank.token for rank in ranks] == ["of-the-user"] * 2
    with ranks[0].client() as client:
        told = client.get("api/v1/ranks").json()["items"]
    assert [each["summary"]["pid"] for each in told] == [rank.pid for rank in ranks]
    for rank in ranks:
        # What loads data for a rank inherits its place, multiplies perhaps, and says nothing.
        spawned = f"__import__('subprocess').run([sys.executable, '-W', 'error', '-c', {MULTIPLY!r}]).returncode"
        assert rank.run(spawned) == "0"
        assert rank.end() == (0, "")


def test_without_ranks_there_is_an_address_and_a_record_and_no_socket(tmp_path: Path) -> None:
    code = PROGRAM + "import os\nfor root, folders, files in os.walk(sys.argv[1]): print(len(folders), len(files))"
    folder = tmp_path / "run"
    ended = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", code, str(folder)],
        cwd=tmp_path,
        env=os.environ
        | {"TP_TUNABLEOP_DASHBOARD": "127.0.0.1:0", "TENSORPLAY_RUNTIME_DIR": str(folder)}
        | {"TENSORPLAY_TOKEN": "of-the-user"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("http://127.0.0.1:") and ended.stdout.endswith("\n0 1\n")
    assert list(folder.iterdir()) == []


def test_a_rank_without_a_place_warns_and_goes_on(job: Any, make_job: Callable[..., Any]) -> None:
    job.folder.mkdir(mode=0o755)
    job.folder.chmod(0o755)
    program = "import warnings; warnings.simplefilter('always')\n" + MULTIPLY + "\nprint('x on', flush=True)"
    code, errors = job.start(1, program, TP_TUNABLEOP_DASHBOARD="127.0.0.1:0").end()
    assert code == 0
    assert "the dashboard cannot be served at 127.0.0.1:0: " in errors and "mode is 0755" in errors


def test_a_client_can_talk_to_a_socket_as_to_an_address(job: Any) -> None:
    second = job.start(1)
    transport = httpx.HTTPTransport(uds=second.url.removeprefix("unix:"))
    with httpx.Client(base_url="http://localhost/", transport=transport) as client:
        # This user needs no token there; the Host still has to be ours.
        assert client.patch("api/v1/switches", json={"tuning": False}).status_code == 200
        assert client.get("api/v1/stats", headers={"Host": "evil.example"}).status_code == 403
