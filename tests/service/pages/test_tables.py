"""What tables say beside the values: how they are sorted, what does not run, when it was seen, what differs."""

import html
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.runtime.context import TuningContext
from tensorplay.service.pages.found_pages import shares_of
from tensorplay.service.untuned_list import UntunedRow
from tensorplay.testing import ScriptedBackend, scripted_kernel

Ask = Callable[..., httpx.Response]
Run = Callable[[int], str]
FAST = scripted_kernel(2)


def _order(text: str) -> list[str]:
    return re.findall(r'href="[^"]*results/[0-9a-f]{16}"><code>taN_m(\d+)_', text)


@pytest.mark.parametrize("key", ["gain", "saved_ms"])
def test_winners_are_sorted_by_what_they_gain_by_the_head_of_the_column(
    ask: Ask, run: Run, backend: ScriptedBackend, context: TuningContext, key: str
) -> None:
    for m, time_ms in ((1, 0.5), (2, 0.25), (3, 0.8)):
        backend._scripts[FAST] = time_ms
        run(m)
    context.override("GemmTunableOp_Float32", run(4), scripted_kernel(1))
    usual = ask("/results?columns=gain&columns=saved_ms").text
    assert f"sort={key}" in usual
    up = ask(f"/results?sort={key}&columns=gain&columns=saved_ms").text
    assert f"sort=-{key}" in up and 'aria-sort="ascending"' in up
    assert _order(up) == ["3", "1", "2", "4"]
    down = ask(f"/results?sort=-{key}&columns=saved_ms&columns=gain&limit=3").text
    assert _order(down) == ["2", "1", "3"]
    (link,) = re.findall(r'rel="next" href="([^"]+)"', down)
    assert _order(ask("/results" + html.unescape(link)).text) == ["4"]


def test_a_winner_that_does_not_run_is_marked_until_it_is_healed(
    ask: Ask, run: Run, backend: ScriptedBackend, context: TuningContext
) -> None:
    for m in (4, 5):
        run(m)
    assert ">rejected</span>" not in ask("/results").text
    context.tuning_disable()
    backend.unavailable[FAST] = "<b>gone"
    context.reresolve()
    run(4)
    text = ask("/results").text
    assert text.count(">rejected</span>") == 1
    assert 'title="&lt;b&gt;gone"' in text
    assert re.search(r'>rejected</span> <a href="[^"]*"><code>taN_m4_', text)
    context.tuning_enable()
    context.reresolve()
    run(4)
    assert ">rejected</span>" not in ask("/results").text


def test_untuned_signatures_say_when_they_were_first_and_last_called(
    ask: Ask, run: Run, context: TuningContext
) -> None:
    context.tuning_disable()
    run(4)
    (item,) = ask("/api/v1/untuned", headers={"Accept": "application/json"}).json()["items"]
    text = ask("/untuned").text
    assert ">first seen</th>" in text and ">last seen</th>" in text
    assert f'datetime="{item["first_seen"]}"' in text
    assert f'datetime="{item["last_seen"]}"' in text


def test_what_a_file_must_match_and_what_it_says_stand_side_by_side(ask: Ask, run: Run, tmp_path: Path) -> None:
    long = "=" + "x" * 5000
    (tmp_path / "tunableop_results0.csv").write_text(f"Validator,SCRIPTED_VERSION,{long}\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="another build"):
        run(4)
    text = ask("/rejections").text
    assert "<b>validator mismatch</b>" in text
    assert '<dt>here</dt><dd><code class="break">1</code>' in text
    assert f'<dt>the file says</dt><dd><code class="break">{long[:200]}</code>' in text
    assert long[:201] not in text


def test_untuned_signatures_have_their_shares_of_the_work(ask: Ask, run: Run, context: TuningContext) -> None:
    context.tuning_disable()
    for m in (10, 30, 30):
        run(m)
    assert re.findall(r'<span class="num">([0-9.]+%)</span>', ask("/untuned").text) == ["85.7%", "14.3%"]


@given(st.lists(st.tuples(st.sampled_from(["GemmTunableOp_Float32", "x"]), st.integers(0, 10**9), st.integers(0, 99))))
def test_shares_are_of_one_whatever_is_listed(listed: list[tuple[str, int, int]]) -> None:
    shares = shares_of([UntunedRow(op, f"taN_m{m}_n3_k5_bias0_dev0", calls) for op, m, calls in listed])
    assert len(shares) == len(listed)
    assert all(0 <= share <= 1 for share in shares)
    assert sum(shares) == pytest.approx(1) or not any(shares)
