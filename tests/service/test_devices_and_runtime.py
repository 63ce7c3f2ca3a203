"""Devices, the runtime, resolving anew, and how often what was rejected was met."""

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np

from tensorplay.gemm import parse_signature
from tensorplay.runtime.context import TuningContext
from tensorplay.service import Service
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FAST = scripted_kernel(2)
OP = "GemmTunableOp_Float32"
Run = Callable[[int], str]


def test_a_device_is_told_with_what_its_files_must_match(client: httpx.Client, run: Run, tmp_path: Path) -> None:
    assert client.get("devices").json()["items"] == []
    run(4)
    (device,) = client.get("devices").json()["items"]
    assert (device["device"], device["is_known"], device["files"]) == ("0", True, ["tunableop_results0.csv"])
    assert device["validators"] == client.get("validators").json()["0"]
    assert (device["results"], device["untuned"], device["rejections"]) == (1, 0, 0)
    assert str(tmp_path) not in client.get("devices").text


def test_the_runtime_tells_versions_and_what_is_set_and_no_values_of_the_environment(
    client: httpx.Client, run: Run, tmp_path: Path
) -> None:
    run(4)
    told = client.get("runtime").json()
    assert told["packages"]["numpy"] == np.__version__
    assert told["variables"] == ["TP_TUNABLEOP_ENABLED"]
    assert told["workspace_mib"] == 32
    assert told["revisions"]["results"] == client.get("results").json()["revision"]
    assert str(tmp_path) not in client.get("runtime").text


def test_every_product_is_decided_anew_when_asked(
    client: httpx.Client, context: TuningContext, backend: ScriptedBackend
) -> None:
    plans = context.plans
    context.keep(plans, "layout", context.resolve(parse_signature(OP, "taN_m4_n3_k5_bias0_dev0"), backend))
    assert client.get("runtime").json()["plans"] == 1
    winners = context.get_results()
    answer = client.post("actions/reresolve")
    assert (answer.status_code, answer.json()) == (202, {"plans": 1})
    assert context.plans is not plans and not context.plans
    assert context.get_results() == winners
    assert client.get("log").json()["items"][-1]["kind"] == "reresolved"
    assert client.post("actions/reresolve").json() == {"plans": 0}


def test_how_often_a_rejection_was_met_is_counted(
    client: httpx.Client, run: Run, backend: ScriptedBackend, context: TuningContext
) -> None:
    run(4)
    context.tuning_disable()
    backend.unavailable[FAST] = "gone"
    for _ in range(3):
        client.post("actions/reresolve")
        run(4)
    (told,) = client.get("rejections").json()["items"]
    assert told["count"] == 3
    assert told["first_seen"] < told["last_seen"]
    assert client.get("rejections.csv").text.splitlines()[0].count("_seen") == 2
    text = httpx.get(str(client.base_url).replace("api/v1/", "metrics")).text
    assert 'tensorplay_rejections_total{reason="not_rebuildable"} 3.0' in text
    assert 'tensorplay_rejections_listed{state="open"} 1.0' in text
    client.delete("rejections")
    assert context.rejection_meetings(OP, told["params"], FAST) is None


def test_recorded_files_have_devices_and_nothing_to_resolve(tmp_path: Path) -> None:
    context = RecordedContext([str(tmp_path / "none.csv")])
    assert (context.spent_tuning_seconds(), len(context.plans)) == (0.0, 0)


def test_the_first_address_links_to_everything_that_can_be_read(
    client: httpx.Client, service: Service, run: Run
) -> None:
    params = run(4)
    links = client.get("").json()["links"]
    for name, path in links.items():
        question = {"op": "GemmTunableOp_Float32", "params": params} if name == "explain" else {}
        if name != "events":
            assert httpx.get(service.url + path, params=question).status_code == 200, name
    read = {path for path, methods in client.get("openapi.json").json()["paths"].items() if "get" in methods}
    assert {f"/{path}" for path in links.values()} - read == {"/api/v1/openapi.json"}
    readable = {path for path in read if "{" not in path}
    # What a rank tells the one that answers for all is for that one.
    assert readable - {f"/{path}" for path in links.values()} == {"/api/v1", "/api/v1/ranks/own"}
