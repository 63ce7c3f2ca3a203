"""Recorded files behind the service: read again when they change, and never written."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorplay.database.csv_text import format_results
from tensorplay.database.explanations import explanations_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.validators import digest
from tensorplay.errors import SettingError, TensorPlayError
from tensorplay.gemm import parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Client, ServiceError, recorded_context, start
from tensorplay.service.recorded_context import RecordedContext

OP = "GemmTunableOp_Float32"
PARAMS = "taN_m{}_n3_k5_bias0_dev0"


def written(path: Path, *rows: int, time_ms: float = 1.0) -> str:
    entries = [Entry(OP, PARAMS.format(m), "Default", time_ms) for m in rows]
    path.write_text(format_results([Validator("GPU", "a")], entries), encoding="utf-8")
    return str(path)


def test_winners_untuned_signatures_and_validators_are_those_of_the_files(tmp_path: Path) -> None:
    results = written(tmp_path / "r.csv", 1, 2)
    untuned = tmp_path / "u.csv"
    untuned.write_text(f"{OP},{PARAMS.format(2)}\n{OP},{PARAMS.format(3)}\n", encoding="utf-8")
    context = RecordedContext([results, str(untuned), str(tmp_path / "later.csv")])
    assert {each.params for each in context.recorded()} == {PARAMS.format(1), PARAMS.format(2)}
    assert {(each.device, each.origin) for each in context.recorded()} == {("0", "file")}
    assert context.get_untuned() == [(OP, PARAMS.format(3))]
    assert context.validators_of("0") == [("GPU", "a")]
    assert [device for device, _ in context.results_files()] == ["0", "0", "?"]


def test_of_two_files_the_one_that_is_named_last_counts(tmp_path: Path) -> None:
    old, new = written(tmp_path / "a.csv", 1, time_ms=1.0), written(tmp_path / "b.csv", 1, time_ms=2.0)
    assert [each.time_ms for each in RecordedContext([old, new]).recorded()] == [2.0]
    assert RecordedContext([new, old]).explain(OP, PARAMS.format(1))["time_ms"] == 1.0


def test_files_that_change_come_or_go_are_read_again_and_told_of(tmp_path: Path) -> None:
    path, heard = tmp_path / "r.csv", []
    context = RecordedContext([str(path)])
    context.listeners.add(lambda event, _: heard.append(event))
    before = context.results_revision()
    assert not context.refresh()
    written(path, 1)
    assert context.refresh()
    assert (len(context.recorded()), context.results_revision()) == (1, before + 1)
    written(path, 1, 2)
    assert context.refresh()
    assert not context.refresh()
    path.unlink()
    assert context.refresh()
    assert context.recorded() == []
    assert heard == ["file", "untuned"] * 3


def test_who_asks_while_a_file_is_read_is_told_what_it_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = RecordedContext([written(tmp_path / "r.csv", 1)])
    content_of, told = recorded_context._content_of, list[int]()

    def read(*given: Any) -> Any:
        asker = Thread(target=lambda: told.append(len(context.recorded())), daemon=True)
        asker.start()
        asker.join(20)
        return content_of(*given)

    monkeypatch.setattr(recorded_context, "_content_of", read)
    written(tmp_path / "r.csv", 1, 2)
    assert context.refresh()
    assert told == [1]
    assert len(context.recorded()) == 2


def test_a_file_that_cannot_be_read_is_empty_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    context = RecordedContext([str(tmp_path), "a\0b"])
    assert context.recorded() == []
    assert "cannot be read" in caplog.text


def test_a_winner_is_explained_by_what_the_process_that_measured_wrote(
    run: Callable[[int], str], tmp_path: Path, context: TuningContext
) -> None:
    params = run(4)
    live: dict[str, Any] = dict(context.explain(OP, params))
    recorded = RecordedContext([path for _, path in context.results_files()])
    found = recorded.explain(OP, params)
    assert found.keys() == live.keys()
    assert (found["kernel"], found["verdict"]) == (live["kernel"], live["verdict"])
    assert [each["kernel"] for each in found["candidates"]] == [each["kernel"] for each in live["candidates"]]
    path = Path(context.results_files()[0][1])
    path.write_text(path.read_text(encoding="utf-8").replace(str(live["kernel"]), "Default"), encoding="utf-8")
    assert recorded.refresh()
    assert recorded.explain(OP, params)["verdict"] is None


def test_it_knows_what_a_live_context_knows_and_counts_nothing(context: TuningContext) -> None:
    recorded = RecordedContext([])
    assert recorded.stats() == dict.fromkeys(context.stats(), 0)
    assert [each.name for each in recorded.settings()] == [each.name for each in context.settings()]


def test_nothing_can_be_changed_not_even_over_rest(tmp_path: Path) -> None:
    path = written(tmp_path / "r.csv", 1)
    before = Path(path).read_bytes()
    context = RecordedContext([path])
    changes: list[Callable[[], object]] = [
        partial(context.forget, OP, PARAMS.format(1)),
        partial(context.override, OP, PARAMS.format(1), "Default"),
        partial(context.tune, parse_signature(OP, PARAMS.format(1))),
    ]
    for change in changes:
        with pytest.raises(TensorPlayError, match="cannot be"):
            change()
    with pytest.raises(SettingError, match="recorded files are shown"):
        context.change_setting("enabled", True)
    assert not context.write_file()
    with start(context=context) as service, Client(service.url, service.token) as client:
        identity = client.results_page().items[0].id
        assert client.result(identity).kernel == "Default"
        assert client.instance().read_only
        calls: list[Callable[[], object]] = [client.tune, client.save_files, partial(client.forget, identity)]
        for call in [*calls, client.set_switches]:
            with pytest.raises(ServiceError) as caught:
                call()
            assert (caught.value.status, caught.value.code) == (403, "read-only")
        assert client.stats()
    assert Path(path).read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["r.csv"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_content_raises(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "r.csv").write_bytes(f"Validator,GPU,a\n{OP},{PARAMS.format(1)},Default,1\n".encode() + data)
    (tmp_path / "r.explain.jsonl").write_bytes(data)
    context = RecordedContext([str(tmp_path / "r.csv")])
    assert PARAMS.format(1) in {each.params for each in context.recorded()}
    for each in context.recorded():
        assert context.explain(each.op, each.params)["kernel"] == each.kernel


FOREIGN = [
    {"candidates": [{"kernel": "k"}]},
    {"candidates": [{"kernel": "k", "median_ms": "fast"}]},
    {"candidates": [{"kernel": "k", "samples": "x", "median_ms": -5, "quartile_low_ms": True}]},
    {"confirmation": {"x": "y"}},
    {"confirmation": {"gain_low": "x", "gain_high": 1, "margin": 1, "gain": 1}},
    {"verdict": "\ud800"},
]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_what_a_foreign_file_explains_is_shown_as_far_as_it_fits(tmp_path: Path, foreign: dict[str, Any]) -> None:
    path = written(tmp_path / "r.csv", 1)
    build = digest([Validator("GPU", "a")])
    line = {
        "op": OP, "params": PARAMS.format(1), "build": build, "verdict": "winner", "winner": "Default",
        "winner_ms": 1.0, "first_choice_ms": 2.0, "candidates": [], "left_out": 0, "confirmation": None,
        "search": None, "clocks": None,
    }  # fmt: skip
    Path(explanations_name(path)).write_text(json.dumps(line | foreign) + "\n", encoding="utf-8")
    with start(context=RecordedContext([path])) as service, httpx.Client(base_url=service.url) as client:
        (item,) = client.get("api/v1/results").json()["items"]
        detail = client.get(f"api/v1/results/{item['id']}")
        assert (detail.status_code, bool(detail.json()["verdict"])) == (200, True)
        page = client.get(f"results/{item['id']}", headers={"Accept": "text/html"})
        assert page.status_code == 200
