"""A GPU is known to be there by files and the environment alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from tensorplay.backends import presence, registry
from tensorplay.backends.presence import is_cuda_present
from tensorplay.errors import TensorPlayError


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "find_spec", lambda _: object())


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("file", "visible", "expected"),
    [
        ("nvidia0", None, True),
        ("nvidia11", "0,1", True),
        ("dxg", None, True),
        ("nvidia0", "GPU-5a2c", True),
        ("nvidia0", "", False),
        ("nvidia0", "-1", False),
        ("nvidia0", " -1,0", False),
        ("nvidiactl", None, False),
        ("null", None, False),
    ],
)
def test_a_device_is_seen_unless_the_environment_hides_it(
    tmp_path: Path, file: str, visible: str | None, expected: bool
) -> None:
    (tmp_path / file).touch()
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert is_cuda_present(environ, tmp_path) is expected


def test_a_device_without_the_packages_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(presence, "find_spec", lambda name: None if name == "nvmath" else object())
    assert not is_cuda_present({}, tmp_path)


def test_a_system_that_lists_no_devices_has_none(tmp_path: Path) -> None:
    assert not is_cuda_present({}, tmp_path / "nowhere")


def test_asking_imports_nothing_for_a_gpu() -> None:
    code = """
import sys
from tensorplay.backends import registry
registry.default_backend()
assert not {"cuda", "nvmath", "torch"} & {name.partition(".")[0] for name in sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_host_has_its_own_backend_and_a_device_without_one_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.backend_of("cpu") is registry.backend("host")
    monkeypatch.setattr(registry, "_reason", lambda: "nvmath-python is not installed")
    with pytest.raises(TensorPlayError, match="nvmath-python is not installed"):
        registry.backend_of("0")
    monkeypatch.setattr(registry, "_reason", lambda: None)
    assert registry.backend_of("0").name == "cublaslt"
