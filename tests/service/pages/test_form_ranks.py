"""What the ranks of a host are told at once, without a script, and which of them refused it."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.datastructures import Headers

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start
from tensorplay.service.pages.form_change import _check_ranks
from tensorplay.service.pages.inner_call import Answer
from tensorplay.service.problems import Problem

Browser = Any


@pytest.fixture(params=[1, 2])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """How many ranks there should be; all but the first never come."""
    folder = tempfile.mkdtemp(prefix="tp-")
    size: int = request.param
    told = {"TENSORPLAY_RUNTIME_DIR": f"{folder}/run", "TORCHELASTIC_RUN_ID": "job", "LOCAL_RANK": "0", "RANK": "0",
            "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)}  # fmt: skip
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    yield size
    shutil.rmtree(folder)


@pytest.fixture
def service(size: int, context: TuningContext) -> Iterator[Service]:
    del size
    with start(context=context) as made:
        yield made


def test_all_ranks_are_told_and_the_page_says_which_refused(
    service: Service, no_script: Callable[[str], Browser], context: TuningContext, size: int, run: Callable[[int], str]
) -> None:
    browser = no_script(service.url)
    browser.sign_in(service.token)
    browser.show("ranks")
    page = browser.press("Tuning off")
    assert not context.tuning_is_enabled()
    if size == 1:
        assert (page.status_code, page.url.path, page.url.fragment) == (200, "/ranks", "done")
        run(4)
        browser.press("Tune what is untuned")
        assert "all at the same time" in browser.page.text
        assert browser.press("Tune on all ranks").status_code == 200
        browser.press("Write the files now")
        assert browser.page.url.path == "/ranks"
        return
    assert page.status_code == 502
    assert "Not on rank 1: it has no service" in page.text and "All others have done it." in page.text
    assert 'href="./ranks">Back to the page' in page.text


@pytest.mark.parametrize("body", [None, [], ["x"], "x", 1, {}, {"title": "x"}])
def test_a_rank_that_refuses_in_words_of_its_own_is_told_of(body: object) -> None:
    items = [{"local_rank": 0, "status": 200, "body": body}, {"local_rank": 1, "status": 500, "body": body}]
    with pytest.raises(Problem, match=r"^Not on rank 1: refused\. All others"):
        _check_ranks(Answer(207, Headers(), json.dumps({"items": items}).encode()))
