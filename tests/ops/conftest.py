"""Products on the real host backend, in a folder of their own, with a budget small enough for tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

ON = {
    "TP_TUNABLEOP_ENABLED": "1",
    "TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "1",
    "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "3",
    "TP_TUNABLEOP_FAMILIES": "all",
}


@pytest.fixture(params=["tuning", "off"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TuningContext]:
    """The process's context for one test: measuring every signature, or with the feature off."""
    environ = ON if request.param == "tuning" else {}
    with use_context(TuningContext(environ=environ, directory=tmp_path)) as context:
        yield context
        context.close()


@pytest.fixture
def tuning(tmp_path: Path) -> Iterator[TuningContext]:
    """The process's context for one test, measuring every signature."""
    with use_context(TuningContext(environ=ON, directory=tmp_path)) as context:
        yield context
        context.close()
