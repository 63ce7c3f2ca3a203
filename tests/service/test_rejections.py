"""Rejections over REST: of winners and of files, measured anew, exported and cleared."""

import csv
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

FIRST, FAST, SLOW = scripted_kernel(1), scripted_kernel(2), scripted_kernel(3)
Run = Callable[[int], str]


@pytest.fixture
def rejected(client: httpx.Client, run: Run, backend: ScriptedBackend, context: TuningContext) -> str:
    """The path of a rejection."""
    run(4)
    context.tuning_disable()
    backend.unavailable[FAST] = "the library has it no more"
    context.plans.clear()
    run(4)
    (item,) = client.get("rejections").json()["items"]
    return f"rejections/{item['id']}"


def test_one_rejection_is_told_with_what_is_meant(client: httpx.Client, rejected: str) -> None:
    told = client.get(rejected).json()
    assert (told["code"], told["kernel"], told["healed"]) == ("not_rebuildable", FAST, None)
    assert told["first_seen"] is not None
    assert client.get(f"results/{told['result_id']}").json()["params"] == told["params"]
    assert client.get("rejections/0123456789abcdef").status_code == 404


def test_a_rejected_winner_is_measured_anew(client: httpx.Client, rejected: str, context: TuningContext) -> None:
    started = client.post(f"{rejected}/retune")
    assert started.status_code == 202
    assert started.json()["kind"] == "retune"
    assert str(httpx.URL(f"http://h/api/v1/{rejected}/retune").join(started.headers["location"])).endswith(
        f"/api/v1/jobs/{started.json()['id']}"
    )
    job = client.get(f"jobs/{started.json()['id']}", params={"wait": 10}).json()
    assert (job["state"], job["failures"]) == ("succeeded", [])
    assert [row[2] for row in context.get_results()] == [FIRST]
    assert client.get(rejected).json()["healed"] == FIRST


def test_a_pinned_winner_is_not_measured_anew(client: httpx.Client, rejected: str, context: TuningContext) -> None:
    context.pin_winner(*context.get_results()[0][:2])
    answer = client.post(f"{rejected}/retune")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:tensorplay:problem:pinned")
    assert client.get("jobs").json()["total"] == 0


def test_the_list_is_exported_and_cleared(
    client: httpx.Client, rejected: str, run: Run, context: TuningContext
) -> None:
    answer = client.get("rejections.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="rejections.csv"'
    (row,) = csv.DictReader(answer.text.splitlines())
    assert (row["kernel"], row["reason"]) == (FAST, "the library has it no more")
    before = client.get("rejections").json()["revision"]
    assert client.delete("rejections").status_code == 204
    assert client.get("rejections").json()["items"] == []
    assert client.get("rejections").json()["revision"] > before
    assert client.get(rejected).status_code == 404
    context.plans.clear()
    run(4)
    assert client.get(rejected).status_code == 200


def test_what_a_file_was_refused_for_is_listed_with_what_was_expected_and_found(
    client: httpx.Client, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "tunableop_results0.csv"
    path.write_text("Validator,SCRIPTED_VERSION,=evil\nnonsense\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="another build"):
        run(4)
    items = {
        each["reason"].partition(":")[2].partition(":")[0].strip(): each
        for each in client.get("rejections").json()["items"]
    }
    told = items["SCRIPTED_VERSION"]
    assert (told["code"], told["expected"], told["found"]) == ("validator_mismatch", "1", ["=evil"])
    assert (told["file"], told["params"]) == ("tunableop_results0.csv", None)
    assert str(tmp_path) not in client.get("rejections").text
    assert ",=evil" not in client.get("rejections.csv").text
    answer = client.post(f"rejections/{told['id']}/retune")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:tensorplay:problem:not-a-winner")


def test_lines_that_are_none_are_listed_by_their_numbers(
    client: httpx.Client, run: Run, context: TuningContext
) -> None:
    run(4)
    path = Path(context.results_files()[0][1])
    path.write_text(path.read_text(encoding="utf-8") + "<img src=x>\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="lines that are not used"):
        context.read_file()
    (told,) = client.get("rejections").json()["items"]
    assert (told["code"], told["file"]) == ("unparsable", path.name)
    assert told["line"] == len(path.read_text(encoding="utf-8").splitlines())


def test_a_kernel_that_failed_when_it_ran_has_a_code_of_its_own(
    client: httpx.Client, context: TuningContext, backend: ScriptedBackend, run: Run
) -> None:
    import numpy as np

    from tensorplay.gemm import parse_signature

    problem = parse_signature("GemmTunableOp_Float32", run(4))
    backend.broken.add(FAST)
    resolved = context.resolve(problem, backend)
    left, right = np.ones((4, 5), np.float32), np.ones((5, 3), np.float32)
    with pytest.raises(Exception, match="by script") as caught:
        resolved.run(left, right, None)
    context.recover(resolved, caught.value, left, right, None)
    (told,) = client.get("rejections").json()["items"]
    assert told["code"] == "check_failed"


def test_a_list_that_is_known_is_not_sent_again_until_one_is_met_again(
    client: httpx.Client, rejected: str, context: TuningContext, run: Run
) -> None:
    del rejected
    tag = {"If-None-Match": client.get("rejections").headers["etag"]}
    again = client.get("rejections", headers=tag)
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag["If-None-Match"])
    context.reresolve()
    run(4)
    met = client.get("rejections", headers=tag)
    assert (met.status_code, met.json()["items"][0]["count"]) == (200, 2)
    assert client.get("rejections", headers={"If-None-Match": met.headers["etag"]}).status_code == 304
