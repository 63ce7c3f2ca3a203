"""Which folder a user's sockets and records lie in, and which one is refused."""

import os
from pathlib import Path

import pytest

from tensorplay.errors import SettingError
from tensorplay.service.runtime_folder import check_folder, folder_to_use, folders_to_read, made_folder

USER = os.geteuid()
SHARED = Path("/tmp") / f"tensorplay-{USER}"  # noqa: S108 - what is tested


def private(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


def test_the_folder_that_is_named_is_the_only_one(tmp_path: Path) -> None:
    environ = {"TENSORPLAY_RUNTIME_DIR": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    assert folder_to_use(environ, USER) == tmp_path
    assert folders_to_read(environ, USER) == [tmp_path]


def test_the_directory_of_the_session_comes_before_the_shared_one() -> None:
    # A short one: the address of a socket has little room.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="x") as name:
        own = Path(name)
        own.chmod(0o700)
        environ = {"XDG_RUNTIME_DIR": name}
        assert folder_to_use(environ, USER) == own / f"tensorplay-{USER}"
        assert folders_to_read(environ, USER)[0] == own / f"tensorplay-{USER}"
        # A batch system starts processes in another environment than a shell has.
        assert SHARED in folders_to_read(environ, USER)
        own.chmod(0o755)
        assert folder_to_use(environ, USER) == SHARED


@pytest.mark.parametrize("given", ["", "relative", "/nonexistent/folder", "/dev/null", "/" + "long" * 30])
def test_a_directory_of_the_session_that_is_none_is_not_used(given: str) -> None:
    assert folder_to_use({"XDG_RUNTIME_DIR": given}, USER) == SHARED


def test_the_directory_of_another_user_is_not_used() -> None:
    # As after `su`, which keeps the environment.
    environ = {"XDG_RUNTIME_DIR": os.fspath(Path("/proc/self"))}
    assert folder_to_use(environ, USER + 1) == SHARED.with_name(f"tensorplay-{USER + 1}")


def test_a_folder_is_made_for_this_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = made_folder(tmp_path / "a")
    finally:
        os.umask(before)
    assert made.stat().st_mode & 0o777 == 0o700
    assert made_folder(made) == made


def test_a_refusal_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    path = private(tmp_path / "a")
    path.chmod(0o750)
    with pytest.raises(
        SettingError, match=r"its mode is 0750, and must be 0700; remove it, or .*TENSORPLAY_RUNTIME_DIR"
    ):
        made_folder(path)
    assert path.stat().st_mode & 0o777 == 0o750


def test_a_folder_below_one_that_all_may_write_to_is_fine_if_nobody_can_replace_it(tmp_path: Path) -> None:
    above = private(tmp_path / "above")
    path = private(above / "a")
    above.chmod(0o1777)
    check_folder(path)
    above.chmod(0o777)
    with pytest.raises(SettingError, match="others may replace it"):
        check_folder(path)
