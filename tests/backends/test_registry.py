import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tensorplay.backends import registry
from tensorplay.backends.base import Backend
from tensorplay.errors import TensorPlayError

IMPORTS = """
import sys
import tensorplay.backends.registry as registry
assert "tensorplay.backends.host.backend" not in sys.modules
registry.backend("host")
assert "tensorplay.backends.host.backend" in sys.modules
"""


def test_a_backend_is_imported_when_it_is_asked_for() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)


def test_threads_that_ask_at_once_get_one_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_made", {})
    together = Barrier(8)

    def ask(_: int) -> Backend:
        together.wait()
        return registry.backend("host")

    with ThreadPoolExecutor(8) as pool:
        assert len({id(made) for made in pool.map(ask, range(8))}) == 1


def test_every_name_gives_the_backend_of_that_name() -> None:
    for name in registry.NAMES:
        assert registry.backend(name).name == name
        assert registry.backend(name) is registry.backend(name)


def test_the_default_is_one_of_them() -> None:
    assert registry.default_backend() in [registry.backend(name) for name in registry.NAMES]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(TensorPlayError, match=r"'nobody' is unknown; known: .*host"):
        registry.backend("nobody")
