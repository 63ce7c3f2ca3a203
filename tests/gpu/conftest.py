"""What the tests on a device share; without a device, or without its packages, all of them are skipped."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tensorplay.backends.cublaslt import library
from tensorplay.backends.cublaslt.backend import CublasLtBackend

_REASON = library.available()
if _REASON is None:
    # Warnings of foreign packages at their import are no concern of these tests.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.cublaslt()
        library.cublas()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder where nothing can run."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))
            if _REASON is not None:
                item.add_marker(pytest.mark.skip(reason=_REASON))


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
