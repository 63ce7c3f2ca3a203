"""A warning points at the caller's own line, and never leaves as an error."""

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import ResultsFileWarning
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.notice import logger, warn


def test_it_points_at_the_line_that_called_the_library(context: TuningContext, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").mkdir()
    with pytest.warns(ResultsFileWarning) as caught:
        assert not context.read_file("odd.csv")
    assert Path(caught[0].filename) == Path(__file__)


def test_where_warnings_are_errors_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        warn("the file is odd", ResultsFileWarning)
    assert "the file is odd" in caplog.text


def test_a_file_that_cannot_be_read_is_no_file(context: TuningContext, call: Any, tmp_path: Path) -> None:
    call(context)
    (tmp_path / "odd.csv").mkdir()
    with pytest.warns(ResultsFileWarning, match="odd.csv"):
        assert not context.read_file("odd.csv")
    assert len(context.get_results()) == 1


class Failing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError(record.getMessage())


@pytest.fixture
def failing() -> Iterator[None]:
    """Let whatever is logged fail."""
    handler = Failing()
    logging.getLogger("tensorplay").addHandler(handler)
    yield
    logging.getLogger("tensorplay").removeHandler(handler)


@pytest.mark.usefixtures("failing")
def test_a_handler_of_the_log_that_fails_fails_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    logger.warning("a record of %d", 1)
    logger.exception("with a traceback", exc_info=ValueError("it"))
    warn("an error by the filter of these tests", ResultsFileWarning)

    def shown(*_: object) -> None:
        raise RuntimeError("showing it failed")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", shown)
        warn("shown by a program's own function", ResultsFileWarning)


@pytest.mark.usefixtures("failing")
def test_a_product_is_made_whatever_its_listeners_and_the_log_raise(context: TuningContext, call: Any) -> None:
    def listener(event: str, detail: object) -> None:
        raise RuntimeError(f"{event} {detail}")

    context.listeners.add(listener)
    call(context)
    assert context.stats()["measured"] == 1


def test_a_record_names_the_line_that_logged_it(caplog: pytest.LogCaptureFixture) -> None:
    logger.warning("here")
    assert caplog.records[0].pathname == __file__
    assert caplog.records[0].funcName == "test_a_record_names_the_line_that_logged_it"
