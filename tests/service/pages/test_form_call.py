import json
import re
from contextlib import suppress
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.service.pages.form_call import call_text, read_call
from tensorplay.service.problems import Problem

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=60)


class _Value(HTMLParser):
    found: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert [name for name, _ in attrs] == ["value"]
        self.found = attrs[0][1]


@given(sure=TEXT, key=TEXT, value=TEXT)
def test_what_a_button_says_is_read_as_it_was_written(sure: str, key: str, value: str) -> None:
    text = call_text(method="POST", path="jobs", body={key: value}, sure=sure, match=None)
    parser = _Value()
    parser.feed(f"<button value='{text}'>")
    assert parser.found is not None
    call = read_call(parser.found)
    assert (call.body, call.sure, call.match) == ({key: value}, sure, None)
    assert json.loads(parser.found) == {"method": "POST", "path": "jobs", "body": {key: value}, "sure": sure}


def test_what_is_left_out_takes_no_room() -> None:
    assert call_text(method="DELETE", path="untuned/x", body=None) == '{"method":"DELETE","path":"untuned/x"}'


@pytest.mark.parametrize(
    "path",
    ["", "/x", "x/", "x//y", "..", "x/../y", "x/.y", ".x", "x?y", "x?y=1&z=2", "x#y", "x%2fy", "x\ny", "x\n", "é",
     "x y", "https://x", "x\\y", "{other}", "x{name}", "x" * 301],
)  # fmt: skip
def test_a_path_that_could_be_read_otherwise_is_none(path: str) -> None:
    with pytest.raises(Problem, match="no form of ours"):
        read_call(json.dumps({"method": "POST", "path": path}))


@given(st.text(max_size=40))
def test_whatever_path_is_read_stays_below_the_api(path: str) -> None:
    with suppress(Problem):
        call = read_call(json.dumps({"method": "POST", "path": path}))
        assert re.fullmatch(r"[\w{}?=./-]+", call.path, re.ASCII)
        assert not any(each.startswith(".") or not each for each in call.path.split("/"))


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda each: each.decode("latin-1")))
def test_any_text_is_a_call_or_refused(text: str) -> None:
    with pytest.raises(Problem):
        read_call(text)
