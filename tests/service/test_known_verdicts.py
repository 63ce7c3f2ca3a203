"""Why winners were selected: in lists, on the overview, and over recorded files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service, start
from tensorplay.service.known_verdicts import KnownVerdicts
from tensorplay.service.live_runtime import LiveRuntime
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.testing import ScriptedBackend

Run = Callable[[int], str]
HTML = {"Accept": "text/html"}


@pytest.fixture
def mixed(context: TuningContext, run: Run) -> dict[str, str]:
    """Winners that were compared, and such that were not: the verdict of each by its params."""
    found = {run(4): "winner", run(8): "winner"}
    context.change_setting("max_tuning_samples", 1)
    return found | {run(m): "insufficient budget" for m in (5, 6, 7)}


def _listed(url: str) -> dict[str, Any]:
    return {each["params"]: each["verdict"] for each in httpx.get(f"{url}api/v1/results").json()["items"]}


def _page(url: str, path: str = "") -> str:
    return httpx.get(url + path, headers=HTML).text


def test_lists_name_the_verdict_and_the_overview_counts_what_is_undecided(
    service: Service, mixed: dict[str, str]
) -> None:
    assert _listed(service.url) == mixed
    assert '<span class="label">3 undecided</span>' in _page(service.url)
    assert '<span class="badge warn">insufficient budget</span> <span class="num">3</span>' in _page(service.url)
    assert "3 winners are the first choice since nothing was really compared" in _page(service.url, "report")
    results = _page(service.url, "results?columns=verdict")
    assert results.count(">insufficient budget</span>") == 3
    assert results.count("<td>winner</td>") == 2
    # Another process, which reads the files, says the same.
    with start(context=RecordedContext([path for _, path in service.context.results_files()])) as recorded:
        assert _listed(recorded.url) == mixed
        assert '<span class="label">3 undecided</span>' in _page(recorded.url)


def test_what_another_process_measured_is_known_here(
    mixed: dict[str, str], context: TuningContext, backend: ScriptedBackend, tmp_path: Path
) -> None:
    del context
    other = TuningContext(environ={"TP_TUNABLEOP_ENABLED": "1"}, directory=tmp_path, backends={"0": backend})
    other.read_file()
    with start(context=other) as service:
        assert _listed(service.url) == mixed
        assert '<span class="label">3 undecided</span>' in _page(service.url)
    other.close()


def test_where_everything_was_compared_nothing_is_counted(service: Service, run: Run) -> None:
    run(4)
    assert "undecided" not in _page(service.url)
    assert "badge warn" not in _page(service.url, "results")


@pytest.fixture
def verdicts(context: TuningContext) -> Iterator[KnownVerdicts]:
    runtime = LiveRuntime(context)
    yield runtime.verdicts
    runtime.close()


def test_a_winner_that_was_set_by_hand_since_has_no_verdict(
    service: Service, client: httpx.Client, mixed: dict[str, str], verdicts: KnownVerdicts
) -> None:
    assert verdicts.undecided() == {"insufficient budget": 3}
    undecided = [each for each in client.get("results").json()["items"] if each["verdict"] == "insufficient budget"]
    kernel = "Default" if undecided[0]["kernel"] != "Default" else next(iter(_kernels(client)))
    changed = client.put(f"results/{undecided[0]['id']}/override", json={"kernel": kernel}, headers={"If-Match": "*"})
    assert changed.status_code == 200, changed.text
    assert verdicts.undecided() == {"insufficient budget": 2}
    assert _listed(service.url)[undecided[0]["params"]] is None


def _kernels(client: httpx.Client) -> set[str]:
    return {each["kernel"] for each in client.get("results").json()["items"]} - {"Default"}


def test_what_no_file_could_take_is_told_from_memory(
    context: TuningContext, run: Run, serve: Callable[..., Service], tmp_path: Path
) -> None:
    # A folder in the place of the file of explanations.
    (tmp_path / "tunableop_results0.explain.jsonl").mkdir()
    params = run(4)
    assert _listed(serve().url) == {params: "winner"}
