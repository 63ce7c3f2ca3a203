"""What one winner tells of its numbers, its samples and the line that it stands in; over REST, clients and pages."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tensorplay.runtime.context import TuningContext
from tensorplay.service import Client, Service, start
from tensorplay.service.recorded_context import RecordedContext
from tensorplay.testing import ScriptedBackend, scripted_kernel

Run = Callable[[int], str]
FIRST, FAST = scripted_kernel(1), scripted_kernel(2)
OP = "GemmTunableOp_Float32"
HTML = {"Accept": "text/html"}


def detail(client: httpx.Client, m: int = 4) -> dict[str, object]:
    (item,) = client.get("results", params={"m_min": m, "m_max": m}).json()["items"]
    found: dict[str, object] = client.get(f"results/{item['id']}").json()
    return found


def page_of(service: Service, detail: dict[str, object]) -> str:
    return httpx.get(f"{service.url}results/{detail['id']}", headers=HTML).text


def test_a_measured_winner_tells_its_samples_its_check_and_its_line(
    client: httpx.Client, run: Run, service: Service, tmp_path: Path
) -> None:
    params = run(4)
    found = detail(client)
    check, histogram, confirmation = found["numerical_check"], found["histogram"], found["confirmation"]
    assert isinstance(check, dict) and isinstance(histogram, dict) and isinstance(confirmation, dict)
    assert (check["outcome"], check["wrong"]) == ("passed", 0)
    assert check["compared"] == 2 and check["atol"] > 0 and check["max_abs_error"] == 0
    for side in ("first_choice", "winner"):
        spread = histogram[side]
        assert sum(spread["counts"]) + spread["below"] + spread["above"] == confirmation["pairs"]
    lines = (tmp_path / "tunableop_results0.csv").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if params in line)
    assert found["provenance"] == {"origin": "measured here", "file": "tunableop_results0.csv", "line": number}
    page = page_of(service, found)
    assert f'measured here; <code class="break">tunableop_results0.csv</code>, line <span class="num">{number}<' in page
    assert '<b class="good">passed</b>: equal to the default' in page
    first = histogram["first_choice"]
    drawn = sum(map(bool, [*first["counts"], first["below"], first["above"]]))
    assert page.count('<rect class="first" x=') == drawn > 0 and "As a table" in page


def test_it_is_told_the_same_by_recorded_files_and_by_a_client(run: Run, client: httpx.Client, tmp_path: Path) -> None:
    run(4)
    live = detail(client)
    names = ("histogram", "numerical_check", "confirmation")
    with (
        start(context=RecordedContext([str(tmp_path / "tunableop_results0.csv")])) as service,
        Client(service.url) as typed,
    ):
        found = typed.result(str(live["id"]))
    told = found.model_dump()
    assert json.loads(json.dumps({name: told[name] for name in names})) == {name: live[name] for name in names}
    assert found.provenance is not None and found.provenance.origin == "file"
    assert found.provenance.model_dump() == {**dict(live["provenance"]), "origin": "file"}  # type: ignore[call-overload] # JSON


def test_a_winner_of_a_file_is_found_in_its_line_until_somebody_changes_that(
    client: httpx.Client, run: Run, service: Service, tmp_path: Path
) -> None:
    for m in (1, 2, 3):
        run(m)
    file = tmp_path / "tunableop_results0.csv"
    second = detail(client, 2)["provenance"]
    file.write_text("# one more line\n" + file.read_text())
    moved = detail(client, 2)["provenance"]
    assert isinstance(second, dict) and moved == {**second, "line": second["line"] + 1}
    file.write_text(file.read_text().replace("_m2_", "_m22_"))
    gone = detail(client, 2)
    assert gone["provenance"] == {"origin": "measured here", "file": None, "line": None}
    assert "in no results file now" in page_of(service, gone)


def test_without_a_check_it_says_that_nobody_compared_it(
    context: TuningContext, client: httpx.Client, run: Run, service: Service
) -> None:
    context.change_setting("numerical_check", "off")
    run(4)
    found = detail(client)
    assert found["numerical_check"] is not None
    assert found["numerical_check"]["outcome"] == "off"  # type: ignore[index] # JSON
    assert "not compared: the numerical check was off" in page_of(service, found)


@pytest.mark.parametrize("backend", [ScriptedBackend({FIRST: 0.5, FAST: 1.0})], ids=["first"])
def test_the_first_choice_is_what_the_others_are_compared_with(
    client: httpx.Client, run: Run, service: Service
) -> None:
    run(4)
    found = detail(client)
    assert (found["kernel"], found["histogram"]) == (FIRST, None)
    assert found["numerical_check"]["outcome"] == "reference"  # type: ignore[index] # JSON
    assert "the first choice, which the others are compared with" in page_of(service, found)


def test_an_override_has_a_line_and_neither_samples_nor_a_check(
    context: TuningContext, client: httpx.Client, run: Run, service: Service
) -> None:
    params = run(4)
    context.override(OP, params, FIRST)
    found = detail(client)
    assert found["histogram"] is found["numerical_check"] is None
    assert isinstance(found["provenance"], dict)
    assert (found["provenance"]["origin"], found["provenance"]["file"]) == ("override", "tunableop_results0.csv")
    assert "not known" in page_of(service, found)


def test_a_file_of_explanations_that_others_wrote_is_shown_as_text(
    client: httpx.Client, run: Run, tmp_path: Path
) -> None:
    run(4)
    identity = detail(client)["id"]
    (explained,) = tmp_path.glob("*.explain.jsonl")
    line = json.loads(explained.read_text())
    line["numerical_check"]["reason"] = "<img src=x onerror=alert(1)>"
    line["histogram"]["first_choice"]["counts"] = ["<b>"] * 16
    explained.write_text(json.dumps(line) + "\n")
    with start(context=RecordedContext([str(tmp_path / "tunableop_results0.csv")])) as recorded:
        page = httpx.get(f"{recorded.url}results/{identity}", headers=HTML).text
    assert "&lt;img src=x" in page and "<img" not in page
    assert "As a table" not in page
