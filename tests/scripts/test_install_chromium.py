"""What fetches a browser for the tests: each of its ways, with programs that stand in for the system's."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "install_chromium"
LOUD = "NOT be tested in a browser"

WORKS = "exit 0"
BROKEN = "exit 1"
# Installs what is there from then on; says so to the log, with what it was asked and how.
APT = 'echo "$DEBIAN_FRONTEND $*" >> "$LOG"\ncase "$*" in *download-only*|*update*) ;; *) cp {made} {chromium} ;; esac'


class Done(NamedTuple):
    """How the script ended; `calls` are those of apt-get and `limits` those of timeout, in order."""

    errors: str
    calls: list[str]
    limits: list[str]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Done]:
    """Runs the script on a system with nothing but what is given; it must end well, and say nothing on its output."""
    programs, log, limits = tmp_path / "bin", tmp_path / "log", tmp_path / "limits"
    programs.mkdir()
    for name in ("sh", "cat", "cp", "grep"):
        (programs / name).symlink_to(shutil.which(name) or name)

    def stand_in(name: str, body: str) -> None:
        made = "made-chromium"
        text = body.format(made=programs / made, chromium=programs / "chromium") if "{made}" in body else body
        (programs / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)

    def script(*, user: int = 0, environ: dict[str, str] | None = None, python: str = "", **given: str) -> Done:
        stand_in("id", f"echo {user}")
        stand_in("timeout", 'echo "$1" >> "$LIMITS"; shift; exec "$@"')
        stand_in("made-chromium", WORKS)
        for name, body in given.items():
            stand_in(name.replace("_", "-"), body)
        if python:
            (tmp_path / "venv" / "bin").mkdir(parents=True)
            stand_in("../venv/bin/python", python)
        variables = {"PATH": str(programs), "LOG": str(log), "LIMITS": str(limits), "VENV": str(tmp_path / "venv")}
        variables |= environ or {}
        ended = subprocess.run(
            ["/bin/sh", SCRIPT], env=variables, capture_output=True, text=True, timeout=30, check=False
        )
        assert (ended.returncode, ended.stdout) == (0, "")
        lines = [path.read_text(encoding="utf-8").splitlines() if path.exists() else [] for path in (log, limits)]
        return Done(ended.stderr, *lines)

    return script


@pytest.mark.parametrize("name", ["chromium", "chromium_browser"])
def test_where_there_is_one_nothing_is_asked_or_said(run: Callable[..., Done], name: str) -> None:
    done = run(apt_get=APT, **{name: WORKS})
    assert (done.errors, done.calls) == ("", [])


def test_one_that_is_named_is_enough(run: Callable[..., Done], tmp_path: Path) -> None:
    browser = tmp_path / "mine"
    browser.write_text("#!/bin/sh\n", encoding="utf-8")
    browser.chmod(0o755)
    assert run(environ={"TENSORPLAY_CHROMIUM": str(browser)}) == ("", [], ["20"])


def test_one_that_is_named_and_does_not_start_is_said(run: Callable[..., Done]) -> None:
    done = run(apt_get=APT, environ={"TENSORPLAY_CHROMIUM": "/nowhere"})
    assert LOUD in done.errors
    assert "/nowhere does not start" in done.errors
    assert done.calls == []


def test_where_only_what_drives_it_lacks_a_library_that_alone_is_installed(run: Callable[..., Done]) -> None:
    done = run(apt_get=APT, chromium=WORKS, python='case "$*" in *--version) grep -q install "$LOG" ;; esac')
    assert LOUD not in done.errors
    assert done.calls[-1].endswith("install -y --no-install-recommends libatomic1")
    assert run(apt_get=APT, chromium=WORKS).calls == done.calls, "the next time there is nothing to do"


def test_what_cannot_be_driven_in_the_end_is_said(run: Callable[..., Done]) -> None:
    assert LOUD in run(apt_get=APT, python='case "$*" in *--version) exit 1 ;; esac').errors


def test_without_playwright_there_is_nothing_to_drive(run: Callable[..., Done]) -> None:
    assert run(apt_get=APT, chromium=WORKS, python=BROKEN) == ("", [], ["20"])


def test_root_with_apt_gets_one_without_a_question_and_within_bounds(run: Callable[..., Done]) -> None:
    done = run(apt_get=APT)
    assert LOUD not in done.errors
    update, download, install = done.calls
    assert update.endswith(" update")
    assert "install -y --no-install-recommends --download-only chromium" in download
    assert "install -y --no-install-recommends chromium" in install
    assert all(call.startswith("noninteractive -qq ") and "Timeout=" in call for call in done.calls)
    assert len(done.limits) == len(done.calls) + 1, "each has a limit, and the look whether it starts"
    assert sum(map(int, done.limits)) <= 900


def test_without_a_network_it_says_what_to_run(run: Callable[..., Done]) -> None:
    done = run(apt_get=f"{APT}\nexit 100")
    assert len(done.calls) == 2, "it is not installed where it could not be fetched"
    assert LOUD in done.errors
    assert "apt-get update && apt-get install -y chromium " in done.errors


def test_an_update_that_fails_is_no_reason_to_give_up(run: Callable[..., Done]) -> None:
    done = run(apt_get=f'{APT}\ncase "$*" in *update*) exit 100 ;; esac')
    assert LOUD not in done.errors
    assert len(done.calls) == 3


def test_somebody_else_than_root_is_told_what_to_run(run: Callable[..., Done]) -> None:
    done = run(apt_get=APT, user=1000)
    assert "sudo sh -c 'apt-get update && apt-get install -y chromium " in done.errors
    assert LOUD in done.errors
    assert done.calls == []


def test_a_system_without_apt_is_told(run: Callable[..., Done]) -> None:
    done = run()
    assert LOUD in done.errors
    assert "no apt-get" in done.errors


def test_what_was_installed_and_does_not_start_is_said(run: Callable[..., Done]) -> None:
    done = run(apt_get=APT, made_chromium=BROKEN)
    assert LOUD in done.errors
    assert "does not start" in done.errors


def test_a_package_that_is_only_a_hint_is_none(run: Callable[..., Done]) -> None:
    done = run(apt_get=APT, chromium_browser=BROKEN)
    assert len(done.calls) == 3


def test_the_tests_of_make_fetch_it_first() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^unit: .*\bbrowser\b", makefile, re.MULTILINE)
    assert re.search(r"^nightly: .*\bbrowser\b", makefile, re.MULTILINE)
    assert re.search(r"^browser: .*\n\t.* sh scripts/install_chromium$", makefile, re.MULTILINE)
    assert SCRIPT.stat().st_mode & 0o111
