import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from markupsafe import escape

from tensorplay.database.record import Entry
from tensorplay.gemm import Signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import create_app
from tensorplay.service.pages.rendering import NAVIGATION, environment
from tensorplay.service.recorded_context import RecordedContext

Ask = Callable[..., httpx.Response]

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\"'><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "</code></title><svg/onload=alert(1)>",
    "javascript:alert(1)",
)
OP, PARAMS = "GemmTunableOp_Float32", "taN_m4_n3_k5_bias0_dev0"


def _fill(context: TuningContext) -> None:
    """Put hostile text wherever a page takes text from, behind the parsers that refuse it in files."""
    device = context._device("0")
    device.ensure_loaded()
    for m, text in enumerate(HOSTILE, 4):
        op, params = f"GemmTunableOp_{text}", f"taN_m{m}_n3_k5_bias0_dev0"
        device.results.put(Entry(OP, params, text, 0.5))
        context._ledger.rejections.add(Signature(OP, params), text, text)
        context._ledger.rejections.add(Signature(op, params), text, text)
        context._ledger.rejections.heal(Signature(op, params), text, winner=text)
        context._ledger.note_untuned(Signature(op, text))
        context.listeners.tell("rejected", kernel=text, reason=text, path=text)
        context.listeners.tell(text, **{text: text})


def _pages(ask: Ask) -> dict[str, str]:
    ids = [each["id"] for each in ask("/api/v1/results", headers={"Accept": "*/*"}).json()["items"]]
    paths = [f"/{path}" for path, _ in NAVIGATION] + [f"/results/{each}" for each in ids]
    texts = {}
    for path in paths:
        for query in ("", "?_partial=1"):
            answer = ask(path + query)
            assert answer.status_code == 200, path
            texts[path + query] = answer.text
    return texts


def _assert_is_text(texts: dict[str, str]) -> None:
    for path, text in texts.items():
        for bad in ("<img", "<script>", "<svg/", "onload=alert(1)>", "onerror=alert(1)>"):
            assert bad not in text, (path, bad)
        assert 'href="javascript:' not in text


def test_hostile_text_is_text_on_every_page(ask: Ask, context: TuningContext) -> None:
    _fill(context)
    texts = _pages(ask)
    _assert_is_text(texts)
    for path in ("/results", "/untuned", "/rejections", "/events"):
        for text in HOSTILE:
            assert str(escape(text)) in texts[path], (path, text)
    assert sum("&lt;img src=x onerror=alert(1)&gt;" in text for text in texts.values()) >= 10


def test_a_file_with_hostile_kernels_is_shown_without_them(
    ask: Ask, context: TuningContext, tmp_path: Path, run: Callable[[int], str]
) -> None:
    lines = [f"Validator,{name},{value}" for name, value in context.validators_of("0")]
    lines += [f"{OP},taN_m{m}_n3_k5_bias0_dev0,{text},0.5" for m, text in enumerate(HOSTILE, 4)]
    (tmp_path / "tunableop_results0.csv").write_text("\n".join(lines) + "\n")
    for m in range(4, 4 + len(HOSTILE)):
        run(m)
    _assert_is_text(_pages(ask))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_query_is_text(ask: Ask, text: str) -> None:
    for path in ("/results", "/untuned", "/rejections", "/settings", "/events"):
        for params in ({"q": text}, {"q": text, "_partial": "1"}, {"sort": text}, {text: "1"}, {"kind": text}):
            answer = ask(path + "?" + str(httpx.QueryParams(params)))
            assert answer.status_code in {200, 422}
            _assert_is_text({path: answer.text})


@pytest.mark.parametrize("text", HOSTILE)
def test_an_error_page_repeats_nothing_of_the_address(ask: Ask, text: str) -> None:
    quoted = httpx.URL("http://127.0.0.1/", params={"a": text}).query.decode()[2:]
    for path in (f"/{quoted}", f"/results/{quoted}", f"/static/{quoted}", f"/results?m_min={quoted}"):
        answer = ask(path)
        assert answer.status_code in {404, 422}
        assert answer.headers["Content-Type"].startswith("text/html")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "alert" not in answer.text and "7 * 7" not in answer.text


def test_every_template_escapes() -> None:
    made = environment()
    for name in made.list_templates():
        assert name.endswith(".html")
        assert "|safe" not in made.loader.get_source(made, name)[0].replace(" ", "") if made.loader else False
    assert made.autoescape is True
    assert made.from_string("{{ text }}").render(text="<b>") == "&lt;b&gt;"


MASKED = "\x1b[31mred\x1b]0;title\x07\u202e\u2066\x9b"
SEEN = "\\x1b[31mred\\x1b]0;title\\x07\\u202e\\u2066\\x9b"


def test_what_steers_a_terminal_or_turns_the_direction_is_seen(
    ask: Ask, context: TuningContext, tmp_path: Path, run: Callable[[int], str]
) -> None:
    # In the values of a file's validators, which may be anything, and in a line that is none.
    text = f"Validator,SCRIPTED_VERSION,{MASKED}\n"
    (tmp_path / "tunableop_results0.csv").write_text(text)
    run(4)
    context.listeners.tell("rejected", kernel=MASKED, reason=MASKED)
    for path in ("/rejections", "/report", "/events"):
        shown = ask(path).text
        assert SEEN in shown, path
        assert not set(shown) & set("\x1b\x07\x9b\u202e\u2066"), path
    (tmp_path / "recorded.csv").write_text(text)
    recorded = create_app(RecordedContext([str(tmp_path / "recorded.csv")]))

    async def devices() -> str:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(recorded), base_url="http://127.0.0.1") as client:
            return (await client.get("/devices", headers={"Accept": "text/html"})).text

    shown = asyncio.run(devices())
    assert SEEN in shown
    assert not set(shown) & set(MASKED) - set(SEEN)
