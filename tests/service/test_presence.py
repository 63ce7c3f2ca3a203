"""What a rank leaves on its host, in folders of its own and in those that somebody else has made."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tensorplay.errors import SettingError, SettingWarning
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start
from tensorplay.service.presence import is_held_by

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that is used, not made yet; its path is short, as the address of a socket must be."""
    above = Path(tempfile.mkdtemp(prefix="tp-"))
    monkeypatch.setenv("TENSORPLAY_RUNTIME_DIR", str(above / "run"))
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    yield above / "run"
    shutil.rmtree(above)


@pytest.fixture
def as_rank(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda number: monkeypatch.setenv("LOCAL_RANK", str(number))


def linked(path: Path) -> None:
    (path.parent / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.parent / "elsewhere")


def of_another(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, 12345, 12345)


def readable(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)


def in_an_open_one(path: Path) -> None:
    path.parent.chmod(0o777)
    path.mkdir(mode=0o700)


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (linked, "symbolic link"),
        pytest.param(of_another, "belongs to the user 12345", marks=AS_ROOT),
        (readable, "its mode is 0755"),
        (in_an_open_one, "others may replace it|its mode is 0777"),
        (Path.touch, "it is no folder"),
    ],
)
@pytest.mark.parametrize("name", ["", "job"])
def test_a_folder_that_somebody_else_may_have_made_is_refused(
    folder: Path,
    as_rank: Callable[[int], None],
    context: TuningContext,
    name: str,
    prepare: Callable[[Path], None],
    reason: str,
) -> None:
    target = folder / name
    if name:
        folder.mkdir(mode=0o700)
    prepare(target)
    as_rank(1)
    with pytest.raises(SettingError, match=reason):
        start(context=context)
    assert not list(target.glob("*"))
    as_rank(0)
    with pytest.warns(SettingWarning, match=reason):
        service = start(context=context)
    assert service.url.startswith("http://")
    assert service.socket is None
    service.stop()
    assert not list(target.glob("*.sock"))


def test_the_first_rank_has_an_address_and_a_socket_and_the_others_a_socket(
    folder: Path, as_rank: Callable[[int], None], serve: Callable[..., Service]
) -> None:
    as_rank(1)
    other = serve(host="0.0.0.0")  # noqa: S104 - not used there
    assert other.url == f"unix:{folder}/job/1.sock" == f"unix:{other.socket}"
    assert f"{folder}/job/1.sock" in other._repr_html_() and "href" not in other._repr_html_()
    other.stop()
    as_rank(0)
    first = serve()
    assert first.url.startswith("http://127.0.0.1:")
    assert first.socket == f"{folder}/job/0.sock"
    first.stop()
    assert list(folder.iterdir()) == []


def test_a_port_that_is_taken_gives_the_socket_back(
    folder: Path, as_rank: Callable[[int], None], serve: Callable[..., Service], tmp_path: Path
) -> None:
    port = int(serve().url.strip("/").rpartition(":")[2])
    as_rank(0)
    with pytest.raises(OSError, match="in use"):
        start(port=port, context=TuningContext(environ={}, directory=tmp_path))
    assert not list(folder.glob("job/*"))


def test_a_process_that_serves_keeps_the_place_that_its_children_inherit(
    folder: Path, as_rank: Callable[[int], None], serve: Callable[..., Service]
) -> None:
    assert not is_held_by(os.getpid(), os.environ)
    as_rank(1)
    assert not is_held_by(os.getpid(), os.environ)
    serve()
    assert is_held_by(os.getpid(), os.environ)
    assert not is_held_by(os.getppid(), os.environ)
    as_rank(2)
    assert not is_held_by(os.getpid(), os.environ)
