"""`tensorplay serve`: recorded files over HTTP, from start to Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from tensorplay.cli.main import main
from tensorplay.database.csv_text import format_results
from tensorplay.database.record import Entry, Validator

Process = subprocess.Popen[str]
WINNER = Entry("GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_devcpu", "Default", 1.0)
OTHER = WINNER._replace(params="taN_m8_n3_k5_bias0_devcpu")


def write(path: Path, *winners: Entry) -> None:
    path.write_text(format_results([Validator("CPU", "a")], winners), encoding="utf-8")


def answer(url: str, **headers: str) -> dict[str, object]:
    with urlopen(Request(url, headers=headers), timeout=20) as response:  # noqa: S310 - our own
        document: dict[str, object] = json.load(response)
    return document


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[Process, str]]]:
    """Starts the command in a process, and returns it with the address that it prints."""
    started: list[Process] = []

    def begin(*arguments: str, **environ: str) -> tuple[Process, str]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "error", "-m", "tensorplay", "serve", *arguments],
            cwd=tmp_path,
            env=os.environ | environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_shows_the_files_of_the_folder_until_it_is_ended(
    serve: Callable[..., tuple[Process, str]], tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path / "tunableop_resultscpu.csv", WINNER)
    process, url = serve()
    assert url.startswith("http://127.0.0.1:")
    assert answer(f"{url}api/v1/results")["total"] == 1
    assert answer(f"{url}api/v1")["read_only"] is True
    process.send_signal(number)
    assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == 0


def test_a_file_that_changes_is_read_again(serve: Callable[..., tuple[Process, str]], tmp_path: Path) -> None:
    process, url = serve("r.csv")
    assert answer(f"{url}api/v1/results")["total"] == 0
    write(tmp_path / "r.csv", WINNER, OTHER)
    end = time.monotonic() + 20
    while answer(f"{url}api/v1/results")["total"] != 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert process.poll() is None


def test_others_need_the_token_to_read(serve: Callable[..., tuple[Process, str]]) -> None:
    process, url = serve("--host", "0.0.0.0", "--name", "ours.example", TENSORPLAY_TOKEN="a-secret")  # noqa: S104, S106 - a test
    url = url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - as above
    with pytest.raises(HTTPError, match="401"):
        answer(f"{url}api/v1/stats")
    token = {"Authorization": "Bearer a-secret"}
    assert answer(f"{url}api/v1/stats", Host="ours.example", **token)
    assert process.stdout is not None
    link = process.stdout.readline().rpartition(" ")[2].strip()
    assert link.startswith(f"{url}login?code=") and "a-secret" not in link
    with urlopen(link, timeout=20) as response:  # noqa: S310 - our own
        assert "HttpOnly" in response.headers["Set-Cookie"]
    with pytest.raises(HTTPError, match="403"):
        answer(f"{url}api/v1/stats", Host="theirs.example", **token)


def test_the_names_are_those_of_the_environment_too(serve: Callable[..., tuple[Process, str]]) -> None:
    _, url = serve("r.csv", TENSORPLAY_HOSTS="ours.example,theirs.example")
    assert answer(f"{url}api/v1/stats", Host="theirs.example:80")
    for names in ("a:1", "*"):
        result = CliRunner(env={"TENSORPLAY_HOSTS": names}).invoke(main, ["serve", "r.csv"])
        assert (result.exit_code, "is no name of a host" in result.output) == (2, True)
    result = CliRunner().invoke(main, ["serve", "r.csv", "--name", "a/b"])
    assert (result.exit_code, "is no name of a host" in result.output) == (2, True)


def test_an_address_that_others_reach_needs_a_token(tmp_path: Path) -> None:
    result = CliRunner(env={"TENSORPLAY_TOKEN": ""}).invoke(main, ["serve", "--host", "0.0.0.0"])  # noqa: S104 - a test
    assert result.exit_code == 2
    assert "give a token (TENSORPLAY_TOKEN, or --token)" in result.output


def test_what_it_cannot_show_is_said_and_shown_when_it_comes(
    serve: Callable[..., tuple[Process, str]], tmp_path: Path
) -> None:
    write(tmp_path / "r.csv", WINNER)
    (tmp_path / "p.py").write_text("print(10)\n", encoding="utf-8")
    process, url = serve("nothere.csv", "p.py", "r.csv")
    assert answer(f"{url}api/v1/results")["total"] == 1
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=20)
    assert complaint.splitlines() == [
        "warning: nothere.csv cannot be read: No such file or directory; it is shown when it can be",
        "warning: p.py is no results or untuned file: nothing of it is shown",
    ]


def test_a_port_that_is_taken_is_said_in_a_line(serve: Callable[..., tuple[Process, str]]) -> None:
    _, url = serve("r.csv")
    result = CliRunner().invoke(main, ["serve", "r.csv", "--port", url.strip("/").rpartition(":")[2]])
    assert result.exit_code == 1
    assert "try another --port" in result.output


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from tensorplay.cli.main import main; main(['serve', 'r.csv'])"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False
    )
    assert ended.returncode == 1
    assert "uvicorn is not installed; run: pip install '.[web]'" in ended.stderr


def test_what_serves_here_is_listed_and_then_nothing(serve: Callable[..., tuple[Process, str]], tmp_path: Path) -> None:
    environ = {"TENSORPLAY_RUNTIME_DIR": str(tmp_path / "run")}
    runner = CliRunner(env=environ)
    nothing = runner.invoke(main, ["serve", "--discover"])
    assert (nothing.exit_code, "TP_TUNABLEOP_DASHBOARD=" in nothing.output) == (0, True)
    assert json.loads(runner.invoke(main, ["serve", "--discover", "--json"]).output) == []
    process, url = serve("r.csv", **environ)
    (found,) = json.loads(runner.invoke(main, ["serve", "--discover", "--json"]).output)
    assert (found["pid"], found["url"], found["serves"]) == (process.pid, url, "files")
    assert found["is_answering"] is True and "token" not in found
    head, line = runner.invoke(main, ["serve", "--discover"]).output.splitlines()
    assert head.split()[:3] == ["pid", "job", "rank"]
    assert str(process.pid) in line and url in line and "(files)" in line
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert runner.invoke(main, ["serve", "--discover"]).output == nothing.output


def test_a_rank_is_listed_with_its_socket(serve: Callable[..., tuple[Process, str]], tmp_path: Path) -> None:
    environ = {"TENSORPLAY_RUNTIME_DIR": str(tmp_path / "r"), "TORCHELASTIC_RUN_ID": "j", "LOCAL_RANK": "1"}
    code = "import sys; from tensorplay import service; print(service.start().url, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | environ,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as rank:
        assert rank.stdout is not None
        url = rank.stdout.readline().strip()
        assert url == f"unix:{tmp_path}/r/j/1.sock"
        lines = CliRunner(env=environ).invoke(main, ["serve", "--discover"]).output.splitlines()
        assert len(lines) == 2 and url in lines[1] and lines[1].split()[1:3] == ["j", "1"]
        # What shows files is no rank, wherever it was started.
        _, address = serve("r.csv", **environ)
        assert address.startswith("http://")
        assert answer(f"{address}api/v1/ranks")["total"] == 0
        rank.communicate()


@pytest.mark.parametrize("arguments", [["--discover", "r.csv"], ["--json"], ["--json", "r.csv"]])
def test_options_that_do_not_go_together_are_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exit_code == 2
    assert "--discover" in result.output


def test_records_of_somebody_else_are_refused_in_a_line(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(0o755)
    result = CliRunner(env={"TENSORPLAY_RUNTIME_DIR": str(folder)}).invoke(main, ["serve", "--discover"])
    assert result.exit_code == 1
    assert "its mode is 0755" in result.output and "Traceback" not in result.output
