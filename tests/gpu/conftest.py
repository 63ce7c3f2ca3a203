"""What the tests on a device share; without a device, or without its packages, all of them are skipped.

A fault breaks the context of the whole process, so the session ends at the test that made it. `scripts/gpu_run` goes
on behind that test in another process: it is named in the file `TENSORPLAY_TESTS_BROKEN`, and given back as
`TENSORPLAY_TESTS_AFTER`.
"""

import os
import warnings
from collections.abc import Generator, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tensorplay.backends.cublaslt import library
from tensorplay.backends.cublaslt.backend import CublasLtBackend
from tensorplay.backends.cublaslt.device import device
from tensorplay.errors import LaunchError

_REASON = library.available()
if _REASON is None:
    # Warnings of foreign packages at their import are no concern of these tests.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.cublaslt()
        library.cublas()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests of this folder where nothing can run, and leave out those that ran before the context broke."""
    after = os.environ.get("TENSORPLAY_TESTS_AFTER")
    names = [item.nodeid for item in items]
    if after in names:
        done = names.index(after) + 1
        config.hook.pytest_deselected(items=items[:done])
        del items[:done]
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))
            if _REASON is not None:
                item.add_marker(pytest.mark.skip(reason=_REASON))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """End the session when a failed test has broken the context."""
    report = yield
    if report.failed and _REASON is None and not item.session.shouldstop:
        try:
            _ = device(0).free_bytes
        except LaunchError as error:
            item.session.shouldstop = f"{item.nodeid} broke the CUDA context: {error}"
            if file := os.environ.get("TENSORPLAY_TESTS_BROKEN"):
                Path(file).write_text(item.nodeid)
    return report


@pytest.fixture
def backend() -> Iterator[CublasLtBackend]:
    """Return a backend of the test's own, whose plans go afterwards."""
    made = CublasLtBackend()
    yield made
    made.forget_plans()


@pytest.fixture
def torch() -> Any:
    """Return torch, which captures graphs and holds operands."""
    pytest.importorskip("torch", exc_type=ImportError)
    found = import_module("torch")
    if not found.cuda.is_available():
        pytest.skip("torch sees no device")
    return found
