"""Numbers for Prometheus: all that are promised, and never a shape among the labels."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tensorplay.measure.budget import Budget
from tensorplay.measure.glance import why_out_of_reach
from tensorplay.measure.report import CandidateReport, SelectionReport, Verdict
from tensorplay.measure.screening import TIME_RAN_OUT
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.listeners import TUNED
from tensorplay.service import Service
from tensorplay.testing import ScriptedBackend
from tensorplay.version import __version__

Run = Callable[[int], str]


def families_of(service: Service) -> dict[str, Any]:
    text = httpx.get(service.url + "metrics").text
    return {each.name: each for each in text_string_to_metric_families(text)}


def samples(family: Any, label: str) -> dict[str, float]:
    return {each.labels[label]: each.value for each in family.samples if each.name.endswith("_total")}


def test_every_number_that_is_promised_is_there_before_anything_happens(service: Service) -> None:
    assert set(families_of(service)) >= {
        "tensorplay_gemm_calls", "tensorplay_signatures", "tensorplay_unexplained_results",
        "tensorplay_background_signatures", "tensorplay_results", "tensorplay_untuned_signatures",
        "tensorplay_rejections_listed",
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


def test_calls_signatures_and_what_is_so_now_are_counted_apart_and_each_once(
    service: Service, run: Run, context: TuningContext, backend: ScriptedBackend
) -> None:
    run(4)
    run(4)
    context.tuning_disable()
    run(8)
    families = families_of(service)
    calls = samples(families["tensorplay_gemm_calls"], "outcome")
    assert calls == {"replayed": 1, "first_choice": 1, "selected_in_process": 0, "fallback": 0}
    signatures = samples(families["tensorplay_signatures"], "outcome")
    assert signatures == {"measured": 1, "queued": 0, "untuned": 1, "pinned": 0, "rejected": 0}
    now = {each.labels["state"]: each.value for each in families["tensorplay_background_signatures"].samples}
    assert now == {"waiting": 0, "measuring": 0}
    (lost,) = families["tensorplay_unexplained_results"].samples
    assert calls | signatures | now | {"unexplained": lost.value} == context.stats()


@pytest.mark.parametrize(
    ("dropped", "outcome"),
    [
        (None, "selected"),
        ("screening: took 1.60 times the fastest", "screening"),
        ("race: another was faster", "race"),
        ("confirmation: the winner gains 3.0%", "confirmation"),
        ("not confirmed: unstable, the gain is +1.0%", "confirmation"),
        (TIME_RAN_OUT, "not_reached"),
        (why_out_of_reach([5.0], Budget(max_duration_ms=1)), "not_reached"),
        ("cannot run: out of resources", "failed"),
        ("the result is wrong", "failed"),
    ],
)
def test_what_was_not_reached_is_no_failure(
    service: Service, context: TuningContext, dropped: str | None, outcome: str
) -> None:
    candidate = CandidateReport("Default", 1, 1.0, 1.0, 1.0, 1.0, dropped)
    report = SelectionReport(Verdict.WINNER, "Default", 1.0, 1.0, (candidate,))
    context.listeners.tell(TUNED, op="x", params="y", report=report)
    counted = samples(families_of(service)["tensorplay_tuning_candidates"], "outcome")
    assert set(counted) == {"selected", "screening", "race", "confirmation", "not_reached", "failed"}
    assert {name for name, value in counted.items() if value} == {outcome}


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
