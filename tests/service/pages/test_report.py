"""The report: everything in one file that loads nothing, runs nothing, and tells no folder."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import httpx

from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

Ask = Callable[..., httpx.Response]
Run = Callable[[int], str]
HOSTILE = "<script>alert(1)</script>"


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_report_tells_what_the_pages_tell(
    ask: Ask, run: Run, context: TuningContext, backend: ScriptedBackend, tmp_path: Path
) -> None:
    for m in (4, 5):
        run(m)
    context.tuning_disable()
    run(6)
    backend.unavailable[scripted_kernel(2)] = HOSTILE
    context.reresolve()
    run(4)
    answer = ask("/report")
    assert re.fullmatch(
        r'attachment; filename="tensorplay-\d+-\d{8}T\d{6}Z\.html"', answer.headers["content-disposition"]
    )
    for told in ("taN_m4_n3", "taN_m5_n3", "taN_m6_n3", "2.00×", "not rebuildable", "SCRIPTED_VERSION", ">tuning<"):  # noqa: RUF001 - the sign of multiplication
        assert told in answer.text, told
    assert str(tmp_path) not in answer.text
    assert HOSTILE not in answer.text and "&lt;script&gt;" in answer.text


def test_a_report_loads_and_runs_nothing(ask: Ask, run: Run) -> None:
    run(4)
    answer = ask("/report")
    tags = _Tags(answer.text).found
    assert {tag for tag, _ in tags}.isdisjoint({"script", "link", "img", "iframe", "form", "a", "object"})
    assert not [
        name for _, attributes in tags for name in attributes if name in {"src", "href", "style"} or name[:2] == "on"
    ]
    (policy,) = [each["content"] for tag, each in tags if tag == "meta" and "http-equiv" in each]
    assert policy is not None and policy.startswith("default-src 'none'; style-src 'sha256-")
    assert answer.headers["content-security-policy"] == f"{policy}; sandbox"


def test_a_report_of_nothing_says_so(ask: Ask) -> None:
    text = ask("/report").text
    assert "Winners: 0 of 0" in text and text.count("<p>None.</p>") == 2 - (">enabled<" in text)
