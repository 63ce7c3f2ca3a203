"""Why a signature runs what it runs, over REST: of this process, of recorded files, by clients and the command line."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.main import main
from tensorplay.errors import LaunchError
from tensorplay.runtime.context import TuningContext
from tensorplay.service import AsyncClient, Client, Service, ServiceError, start
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

Run = Callable[[int], str]
FIRST, FAST = scripted_kernel(1), scripted_kernel(2)
OP = "GemmTunableOp_Float32"


def ask(client: httpx.Client, params: str, op: str = OP, **headers: str) -> httpx.Response:
    return client.get("explain", params={"op": op, "params": params}, headers=headers)


def test_it_tells_what_the_context_tells(client: httpx.Client, run: Run, context: TuningContext) -> None:
    params = run(4)
    answer = ask(client, params).json()
    told = json.loads(json.dumps(dict(context.explain(OP, params))))
    (found,) = client.get("results").json()["items"]
    assert answer.pop("result_id") == found["id"]
    assert answer.pop("captured") is told.pop("pinned") is None
    assert answer == told
    assert answer["kernel"] == answer["winner"] == FAST
    assert answer["confirmation"]["gain"] > answer["confirmation"]["margin"]
    dropped = {each["kernel"]: each["dropped"] for each in answer["candidates"]}
    assert dropped[FAST] is None and dropped[FIRST]
    assert all(each["quartile_low_ms"] <= each["median_ms"] for each in answer["candidates"] if each["samples"])


def test_it_is_not_sent_again_until_something_changed(client: httpx.Client, run: Run) -> None:
    params = run(4)
    tag = ask(client, params).headers["etag"]
    again = ask(client, params, **{"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    run(4)  # Counted, with no revision of a list that grows.
    changed = ask(client, params, **{"If-None-Match": tag})
    assert changed.status_code == 200 and changed.headers["etag"] != tag


def test_what_has_no_winner_is_explained_by_why_it_has_none(
    client: httpx.Client, run: Run, backend: ScriptedBackend
) -> None:
    backend.trial_error = LaunchError("the device is on fire")
    answer = ask(client, run(4)).json()
    assert answer["kernel"] is answer["result_id"] is answer["verdict"] is None
    assert "on fire" in answer["not_measured"]


def test_a_rejected_winner_is_told_with_what_took_its_place(
    client: httpx.Client, run: Run, backend: ScriptedBackend, context: TuningContext
) -> None:
    params = run(4)
    backend.unavailable[FAST] = "gone with the last release"
    context.reresolve()
    run(4)
    (rejected,) = ask(client, params).json()["rejections"]
    assert (rejected["kernel"], rejected["healed"]) == (FAST, FIRST) and "gone" in rejected["reason"]


def test_what_nothing_is_known_of_is_not_found_and_no_device_is_touched(
    client: httpx.Client, run: Run, context: TuningContext
) -> None:
    context.tuning_disable()
    untuned, met = run(4), context.results_files()
    for params in (untuned, untuned.replace("m4", "m5"), untuned.replace("dev0", "dev7"), "taN_m1_n1_k1_bias0_devcpu"):
        answer = ask(client, params)
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:tensorplay:problem:not-found"), params
    assert context.results_files() == met


@pytest.mark.parametrize(
    ("op", "params"),
    [("x", "zqj"), ("", ""), (OP, "taN_m4"), ("GemmTunableOp_Int3", "taN_m4_n3_k5_bias0_dev0"), (OP, "\x00\n,"),
     (OP, "taN_m99999999999999999999_n3_k5_bias0_dev0"), (OP, "ta\N{SNOWMAN}")],
)  # fmt: skip
def test_a_signature_that_is_none_is_not_valid(client: httpx.Client, op: str, params: str) -> None:
    answer = ask(client, params, op)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:tensorplay:problem:bad-signature")
    assert not params or params not in answer.text


@pytest.mark.parametrize("query", [{}, {"op": OP}, {"params": "x"}, {"op": "x" * 201, "params": "x"}])
def test_both_parts_of_a_signature_are_needed(client: httpx.Client, query: dict[str, str]) -> None:
    answer = client.get("explain", params=query)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:tensorplay:problem:invalid")


def test_recorded_files_are_explained_by_what_lies_beside_them(
    run: Run, context: TuningContext, tmp_path: Path
) -> None:
    params = run(4)
    expected = context.explain(OP, params)
    recorded = RecordedContext([str(tmp_path / "tunableop_results0.csv")])
    with start(context=recorded) as service, Client(service.url) as reader:
        told = reader.explain(OP, params)
        assert (told.kernel, told.origin, told.verdict) == (FAST, "file", expected["verdict"])
        assert told.candidates and told.confirmation and told.candidates[0].kernel == FIRST
        with pytest.raises(ServiceError, match="no winner") as caught:
            reader.explain(OP, params.replace("m4", "m5"))
        assert (caught.value.status, caught.value.code) == (404, "not-found")
        with pytest.raises(ServiceError, match="no signature"):
            reader.explain(OP, "x")


def test_both_clients_explain_a_signature_and_show_a_result(service: Service, run: Run) -> None:
    params = run(4)

    async def awaited() -> tuple[object, object]:
        async with AsyncClient(service.url) as client:
            told = await client.explain(OP, params)
            return told, await client.result(told.result_id or "")

    with Client(service.url) as client:
        told = client.explain(OP, params)
        assert (told, client.result(told.result_id or "")) == asyncio.run(awaited())
        assert client.result(told.result_id or "").candidates == told.candidates


def ctl(service: Service, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["ctl", *arguments], env={"TENSORPLAY_URL": service.url})


def test_the_command_shows_every_candidate_and_why(service: Service, run: Run) -> None:
    run(4)
    shown = ctl(service, "explain", OP, run(4))
    assert shown.exit_code == 0, shown.output
    for text in (
        f"winner: {FAST}",
        "verdict: winner",
        "confirmation: ",
        "needed +",
        FIRST,
        "first choice: ",
        "calls: ",
    ):
        assert text in shown.output, shown.output
    assert "build" not in shown.output
    assert json.loads(ctl(service, "--json", "explain", OP, run(4)).output)["winner"] == FAST


def test_the_command_says_what_holds_where_nothing_was_measured(
    service: Service, run: Run, backend: ScriptedBackend
) -> None:
    backend.trial_error = LaunchError("the device\x1b is on fire")
    shown = ctl(service, "explain", OP, run(4))
    assert shown.exit_code == 0 and "not measured: " in shown.output and "\x1b" not in shown.output
    refused = ctl(service, "explain", OP, "taN_m9_n3_k5_bias0_dev0")
    assert refused.exit_code == 1 and "`tensorplay ctl untuned` lists" in refused.output
