"""A warning points at the caller's own line, and never leaves as an error."""

import logging
import warnings
from pathlib import Path
from typing import Any

import pytest

from tensorplay.errors import ResultsFileWarning
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.notice import warn


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
