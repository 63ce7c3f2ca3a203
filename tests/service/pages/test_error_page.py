import logging
from collections.abc import Callable

import httpx
import pytest

from tensorplay.runtime.context import TuningContext

Ask = Callable[..., httpx.Response]


def test_a_browser_gets_a_page_and_a_program_a_document(ask: Ask) -> None:
    page = ask("/nothing/here")
    assert page.status_code == 404
    assert "Not Found" in page.text and 'href="../"' in page.text
    document = ask("/nothing/here", headers={"Accept": "application/json"})
    assert document.headers["Content-Type"] == "application/problem+json"
    assert ask("/api/v1/nothing").headers["Content-Type"] == "application/problem+json"


def test_an_invalid_filter_names_the_field(ask: Ask) -> None:
    page = ask("/results?limit=100000")
    assert page.status_code == 422
    assert "<code>limit</code>" in page.text and "100000" not in page.text


def test_an_address_that_does_not_fit_is_told_in_peoples_words_and_leads_back(ask: Ask) -> None:
    page = ask("/rejections?healed=perhaps&q=x")
    assert page.status_code == 422
    assert "<code>healed</code>: must be yes or no" in page.text
    assert "`errors`" not in page.text and "Input should" not in page.text
    assert 'href="./rejections">Back to the page' in page.text
    page = ask("/results/no-such-id")
    assert page.status_code == 422 and "pattern" not in page.text and "[0-9a-f]" not in page.text


def test_a_cursor_of_another_process_begins_anew(ask: Ask) -> None:
    page = ask("/results?cursor=abcd")
    assert page.status_code == 400
    assert "begin anew" in page.text


def test_a_failure_is_a_page_without_its_cause(
    ask: Ask, context: TuningContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(context, "stats", fail)
    with caplog.at_level(logging.CRITICAL):
        page = ask("/results")
    assert page.status_code == 500
    assert "secret" not in page.text and "Traceback" not in page.text
