"""What else the service shows: the process, rejections, files, validators, counts, metrics, and its own description."""

from collections.abc import Callable
from pathlib import Path

import httpx

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.testing import ScriptedBackend, scripted_kernel

Run = Callable[[int], str]


def test_the_root_says_what_process_answers(client: httpx.Client) -> None:
    import os

    root = client.get("").json()
    assert root["pid"] == os.getpid()
    assert root["read_only"] is False


def test_a_rejection_is_shown_with_its_reason(
    client: httpx.Client, run: Run, backend: ScriptedBackend, context: TuningContext
) -> None:
    params = run(4)
    context.tuning_disable()
    backend.unavailable[scripted_kernel(2)] = "the library has it no more"
    context.plans.clear()
    run(4)
    (item,) = client.get("rejections").json()["items"]
    assert (item["params"], item["reason"]) == (params, "the library has it no more")


def test_files_are_shown_by_name_alone(client: httpx.Client, run: Run, tmp_path: Path) -> None:
    run(4)
    items = client.get("files").json()["items"]
    assert [item["name"] for item in items] == ["tunableop_results0.csv", "tunableop_results0.explain.jsonl"]
    assert str(tmp_path) not in client.get("files").text
    assert client.post("files/save").json() == {"written": True}


def test_counts_are_those_of_the_context(
    client: httpx.Client, run: Run, context: TuningContext, service: Service
) -> None:
    run(4)
    assert client.get("stats").json() == context.stats()
    text = httpx.get(service.url + "metrics").text
    assert 'tensorplay_signatures_total{outcome="measured"} 1.0' in text
    assert "tensorplay_results 1.0" in text
    assert "m4" not in text


def test_the_description_names_every_operation_once(client: httpx.Client) -> None:
    paths = client.get("openapi.json").json()["paths"]
    names = [operation["operationId"] for item in paths.values() for operation in item.values()]
    assert len(names) == len(set(names))
    assert {"results_list", "jobs_start", "events_stream", "switches_change"} <= set(names)
