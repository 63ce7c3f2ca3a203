import asyncio
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import create_app
from tensorplay.service.pages.rendering import NAVIGATION
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

PATHS = [f"/{path}" for path, _ in NAVIGATION]
Ask = Callable[..., httpx.Response]
Run = Callable[[int], str]


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]


def _seeded(run: Run, context: TuningContext, backend: ScriptedBackend) -> None:
    run(4)
    run(5)
    context.change_setting("tuning", False)
    run(6)
    backend.unavailable[scripted_kernel(2)] = "it is gone"
    backend._version = "2"


def _all_paths(ask: Ask) -> list[str]:
    listed = ask("/api/v1/results", headers={"Accept": "application/json"}).json()["items"]
    return [*PATHS, *(f"/results/{each['id']}" for each in listed)]


@pytest.mark.parametrize("path", PATHS)
def test_a_page_without_data_says_what_to_do(ask: Ask, path: str) -> None:
    answer = ask(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/html")
    assert 'class="empty"' in answer.text or path in {"/settings", "/"}
    assert '<html lang="en"' in answer.text


def test_how_often_a_rejection_was_met_is_shown(
    ask: Ask, run: Run, context: TuningContext, backend: ScriptedBackend
) -> None:
    _seeded(run, context, backend)
    for _ in range(2):
        context.reresolve()
        run(4)
    assert ", met 2 times, last <time" in ask("/rejections").text


def test_what_is_spent_of_the_seconds_stands_beside_them(ask: Ask, run: Run, context: TuningContext) -> None:
    run(4)
    assert f"spent {round(context.spent_tuning_seconds(), 1)} s" in ask("/settings").text


def test_a_new_file_is_saved_where_there_are_winners(ask: Ask, run: Run, tmp_path: Path) -> None:
    assert "data-save" not in ask("/devices").text
    run(4)
    text = ask("/devices").text
    assert "data-save" in text and '"path":"files/{name}/save","body":{},"new":true' in text


def test_every_page_shows_data(ask: Ask, run: Run, context: TuningContext, backend: ScriptedBackend) -> None:
    _seeded(run, context, backend)
    for path in _all_paths(ask):
        answer = ask(path)
        assert answer.status_code == 200, path
        assert "hit rate" in answer.text
    assert "taN_m4_n3_k5_bias0_dev0" in ask("/results").text
    assert "taN_m6_n3_k5_bias0_dev0" in ask("/untuned").text
    assert "2.00×" in ask("/").text  # noqa: RUF001 - the sign of multiplication


def test_a_partial_is_what_changes_and_no_document(ask: Ask, run: Run) -> None:
    run(4)
    for path in _all_paths(ask):
        text = ask(path + "?_partial=1").text
        assert "<html" not in text and "<script" not in text
        assert '<main id="main"' in text and 'class="strip"' in text
        assert "_partial" not in text


def test_nothing_is_inline_or_absolute(ask: Ask, run: Run, context: TuningContext, backend: ScriptedBackend) -> None:
    _seeded(run, context, backend)
    for path in [*_all_paths(ask), "/nope", "/results?m_min=x"]:
        tags = _Tags(ask(path).text)
        assert len(tags.ids) == len(set(tags.ids)), path
        for tag, attributes in tags.all:
            assert tag != "style" and "style" not in attributes
            assert tag != "script" or attributes.get("src")
            assert not [name for name in attributes if name.startswith("on")]
            for name in ("href", "src", "action"):
                link = attributes.get(name)
                assert link is None or not (link.startswith("/") or "://" in link), (path, link)


@pytest.mark.parametrize("prefix", ["", "/user/a/proxy/8123"])
def test_every_link_of_a_page_leads_somewhere(ask: Ask, run: Run, prefix: str) -> None:
    run(4)
    for path in _all_paths(ask):
        base = httpx.URL(f"http://127.0.0.1{prefix}{path}")
        for tag, attributes in _Tags(ask(path, root_path=prefix).text).all:
            link = attributes.get("href") or attributes.get("src")
            if link is None or link.startswith("#"):
                continue
            target = base.join(link)
            assert target.path.startswith(prefix + "/"), (path, link)
            reached = ask(target.raw_path.decode().removeprefix(prefix), root_path=prefix)
            assert reached.status_code == 200, (path, tag, link)


def test_a_form_field_left_empty_is_no_filter(ask: Ask, run: Run) -> None:
    run(4)
    answer = ask("/results?q=&dtype=&transposed=&bias=&m_min=&m_max=&sort=-m&columns=m&columns=gain")
    assert answer.status_code == 200
    assert "taN_m4_n3_k5_bias0_dev0" in answer.text
    assert "speed</th>" not in answer.text


def test_the_address_is_the_state_of_the_table(ask: Ask, run: Run) -> None:
    for m in (4, 5, 6):
        run(m)
    first = ask("/results?sort=-m&limit=2&m_min=4")
    assert first.text.index("taN_m6_") < first.text.index("taN_m5_") and "taN_m4_" not in first.text
    links = [attributes["href"] for _, attributes in _Tags(first.text).all if attributes.get("rel") == "next"]
    assert links[0] is not None and "m_min=4" in links[0]
    second = ask("/results" + links[0])
    assert "taN_m4_" in second.text and "taN_m5_" not in second.text
    assert 'value="4"' in second.text
    assert 'aria-sort="descending"' in second.text


def test_a_page_that_has_not_changed_is_not_sent_again(ask: Ask, run: Run) -> None:
    run(4)
    tag = ask("/results?_partial=1").headers["ETag"]
    assert ask("/results?_partial=1", headers={"If-None-Match": tag}).status_code == 304
    run(5)
    assert ask("/results?_partial=1", headers={"If-None-Match": tag}).status_code == 200


def test_settings_offer_the_editor_of_their_kind(ask: Ask) -> None:
    text = ask("/settings").text
    for kind in ("boolean", "choice", "names", "integer", "number"):
        assert f'"fields":{{"value":"{kind}"}}' in text
    assert '"path":"settings/filename' not in text, "no path is taken from a client"


def test_a_read_only_service_offers_no_change(context: TuningContext, tmp_path: Path) -> None:
    del context
    recorded = RecordedContext([str(tmp_path / "none.csv")])
    assert create_app(recorded).state.tensorplay.runtime.read_only


def test_recorded_files_have_the_same_pages(tmp_path: Path) -> None:
    file = tmp_path / "winners.csv"
    file.write_text("Validator,PT_VERSION,1\nGemmTunableOp_Float32,taN_m4_n3_k5_bias0_dev0,Default,0.5\n")
    other = tmp_path / "other.csv"
    other.write_text(file.read_text().replace("m4", "m5"))
    app = create_app(RecordedContext([str(file), str(other)]))

    async def all_pages() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return [await client.get(path, headers={"Accept": "text/html"}) for path in PATHS]

    pages = asyncio.run(all_pages())
    assert {page.status_code for page in pages} == {200}
    assert all("read-only" in page.text and "recorded files" in page.text for page in pages)
    assert "taN_m4_n3_k5_bias0_dev0" in pages[1].text
    overview, strip = pages[0].text, pages[1].text
    assert "no process multiplies here" in overview
    for live in ("Calls a second", "Hit rate", "hit rate", "Collecting", 'role="switch"', "Time saved", ">Measuring<"):
        assert live not in overview, live
    assert "device <b>0</b>" in strip
