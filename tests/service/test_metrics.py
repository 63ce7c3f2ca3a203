"""Numbers for Prometheus: all that are promised, and never a shape among the labels."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.version import __version__

Run = Callable[[int], str]


def families_of(service: Service) -> dict[str, Any]:
    text = httpx.get(service.url + "metrics").text
    return {each.name: each for each in text_string_to_metric_families(text)}


def samples(family: Any, label: str) -> dict[str, float]:
    return {each.labels[label]: each.value for each in family.samples if each.name.endswith("_total")}


def test_every_number_that_is_promised_is_there_before_anything_happens(service: Service) -> None:
    assert set(families_of(service)) >= {
        "tensorplay_gemm_calls", "tensorplay_results", "tensorplay_untuned_signatures", "tensorplay_rejections_listed",
        "tensorplay_enabled", "tensorplay_tuning_enabled", "tensorplay_tuning_seconds", "tensorplay_tuning_candidates",
        "tensorplay_job_progress_ratio", "tensorplay_build_info", "tensorplay_web_sse_clients",
        "tensorplay_web_event_loop_lag_seconds", "tensorplay_web_dropped_events",
    }  # fmt: skip


def test_measuring_is_counted(service: Service, run: Run, context: TuningContext) -> None:
    run(4)
    run(8)
    found = families_of(service)
    candidates = samples(found["tensorplay_tuning_candidates"], "outcome")
    assert candidates["selected"] == 2
    assert sum(candidates.values()) == 6
    (spent,) = [each.value for each in found["tensorplay_tuning_seconds"].samples]
    assert spent == context.spent_tuning_seconds() > 0
    (lag,) = [each.value for each in found["tensorplay_web_event_loop_lag_seconds"].samples]
    assert lag >= 0


def test_the_build_names_each_device(service: Service, run: Run) -> None:
    (before,) = families_of(service)["tensorplay_build_info"].samples
    assert before.labels == {"version": __version__, "device": "", "library": ""}
    run(4)
    (build,) = families_of(service)["tensorplay_build_info"].samples
    assert (build.labels["version"], build.labels["device"], build.value) == (__version__, "0", 1.0)


@pytest.mark.parametrize(
    ("accept", "kind", "end"),
    [
        ("*/*", "text/plain", ""),
        ("text/html", "text/plain", ""),
        ("application/openmetrics-text; version=1.0.0; q=0.9, text/plain", "application/openmetrics-text", "# EOF\n"),
    ],
)
def test_the_format_is_the_one_that_is_accepted(service: Service, run: Run, accept: str, kind: str, end: str) -> None:
    run(4)
    answer = httpx.get(service.url + "metrics", headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert answer.text.endswith(end)
    parse = openmetrics if end else text_string_to_metric_families
    assert {each.name for each in parse(answer.text)} >= {"tensorplay_results", "tensorplay_tuning_seconds"}


def test_no_label_is_a_shape_a_kernel_or_a_name_of_a_file(service: Service, run: Run) -> None:
    run(4)
    for family in families_of(service).values():
        for sample in family.samples:
            assert set(sample.labels) <= {"outcome", "state", "reason", "version", "device", "library"}
            assert not any("m4" in value or ".csv" in value for value in sample.labels.values())
