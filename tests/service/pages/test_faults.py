"""What went wrong is seen where one looks, and not only on the page that lists it."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tensorplay.errors import ResultsFileWarning
from tensorplay.runtime.context import TuningContext
from tensorplay.service.app import ServiceSettings, create_app
from tensorplay.service.identity import result_id
from tensorplay.testing import ScriptedBackend, scripted_kernel

Ask = Callable[..., httpx.Response]
Run = Callable[[int], str]

OP = "GemmTunableOp_Float32"
GIVEN = "a-long-enough-word"


def test_a_winner_that_does_not_run_says_so_on_its_page(
    ask: Ask, run: Run, context: TuningContext, backend: ScriptedBackend
) -> None:
    page = f"/results/{result_id(OP, run(4))}"
    assert "does not run here" not in ask(page).text
    context.change_setting("tuning", False)
    backend.unavailable[scripted_kernel(2)] = "it is gone"
    context.reresolve()
    run(4)
    assert "<b>This winner does not run here.</b> it is gone." in ask(page).text


def test_the_overview_counts_what_is_wrong_with_files_too(ask: Ask, context: TuningContext, tmp_path: Path) -> None:
    (tmp_path / "tunableop_results0.csv").write_text("nonsense\n")
    with pytest.warns(ResultsFileWarning):
        context.read_file()
    listed = re.search(r'Rejections <span class="quiet num">(\d+)<', ask("/rejections").text)
    assert listed and listed[1] != "0"
    assert f'<span class="label">Rejections</span><b>{listed[1]}</b>' in ask("/").text


def test_a_job_that_could_not_measure_everything_does_not_look_like_a_success(context: TuningContext) -> None:
    app = create_app(context, settings=ServiceSettings(token=GIVEN))
    signatures = [{"op": OP, "params": f"taN_m4_n3_k5_bias0_dev{device}"} for device in (0, 7)]

    async def page_of_a_job() -> str:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            token = {"Authorization": f"Bearer {GIVEN}"}
            source = {"source": {"signatures": signatures}}
            started = (await client.post("/api/v1/jobs", headers=token, json=source)).json()
            await client.get(f"/api/v1/jobs/{started['id']}?wait=20")
            return (await client.get("/jobs", headers={"Accept": "text/html"})).text

    page = asyncio.run(page_of_a_job())
    assert '<span class="state bad">ended</span>' in page
    assert '<span class="bad">1 could not be measured</span>' in page


def test_a_value_that_is_on_is_told_as_its_switch_tells_it(ask: Ask, context: TuningContext) -> None:
    context.tuning_disable()
    page = ask("/settings").text
    assert 'Value <b class="num">off</b> <span class="quiet">default on</span>' in page
    assert '<b class="num">True</b>' not in page


def test_the_page_of_a_job_counts_all_that_failed_and_not_only_those_that_it_names(context: TuningContext) -> None:
    app = create_app(context, settings=ServiceSettings(token=GIVEN))
    signatures = [{"op": OP, "params": f"taN_m{m}_n3_k5_bias0_dev7"} for m in range(1, 131)]

    async def page_of_a_job() -> str:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            token = {"Authorization": f"Bearer {GIVEN}"}
            source = {"source": {"signatures": signatures}}
            started = (await client.post("/api/v1/jobs", headers=token, json=source)).json()
            await client.get(f"/api/v1/jobs/{started['id']}?wait=20")
            return (await client.get("/jobs", headers={"Accept": "text/html"})).text

    page = asyncio.run(page_of_a_job())
    assert '<span class="bad">130 could not be measured</span>' in page
    assert "What could not be measured: the first 100</summary>" in page
