"""The pages over recorded files: they say nothing that only a process that multiplies can, and offer nothing."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tensorplay.service import create_app
from tensorplay.service.pages.rendering import NAVIGATION
from tensorplay.service.recorded_context import RecordedContext

LIVE = (
    "tuning is on", "Turn tuning off", "Run your products", "run your products", "Run a product", "flip a switch",
    "was started alone", "that was met runs on this build", "when they are met", "-X ",
    "Write the files now", "A load adds", ">Tune", "Forget this winner", "in this process", "Calls here",
)  # fmt: skip
EMPTY = {
    "untuned": "The files list no signature without a winner",
    "jobs": "Files have no jobs",
    "events": "No file has changed since the service started",
    "ranks": "Files have no ranks",
    "rejections": "Every line of the files could be read",
    "results": "There are no winners yet",
}


def _pages(*files: Path) -> dict[str, str]:
    app = create_app(RecordedContext(map(str, files)))

    async def all_pages() -> dict[str, str]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            found = {}
            listed = (await client.get("/api/v1/results")).json()["items"]
            for path in [*(path for path, _ in NAVIGATION), *(f"results/{each['id']}" for each in listed)]:
                answer = await client.get(f"/{path}", headers={"Accept": "text/html"})
                assert answer.status_code == 200, path
                found[path] = answer.text
            return found

    return asyncio.run(all_pages())


def _main(text: str) -> str:
    """Return what a page shows of its own: the dialogs around it are there for every service."""
    return text.partition("<main")[2].partition("</main>")[0]


@pytest.mark.parametrize("name", [None, "results", "untuned"])
def test_nothing_is_told_of_a_process_and_nothing_offered(tmp_path: Path, name: str | None) -> None:
    file = tmp_path / "tunableop.csv"
    if name == "results":
        file.write_text("Validator,PT_VERSION,1\nGemmTunableOp_Float32,taN_m4_n3_k5_bias0_dev0,Default,0.5\nno line\n")
    elif name == "untuned":
        file.write_text("GemmTunableOp_Float32,taN_m4_n3_k5_bias0_dev0\n")
    for path, text in _pages(file).items():
        for live in LIVE:
            assert live not in _main(text), (path, live)


def test_what_is_empty_says_so_in_its_own_words(tmp_path: Path) -> None:
    pages = _pages(tmp_path / "none.csv")
    for path, title in EMPTY.items():
        assert f"<h2>{title}</h2>" in pages[path]


def test_lines_that_cannot_be_read_are_no_winners_that_did_not_run(tmp_path: Path) -> None:
    file = tmp_path / "tunableop.csv"
    file.write_text("Validator,PT_VERSION,1\nGemmTunableOp_Float32,taN_m4_n3_k5_bias0_dev0,Default,0.5\nno line\n")
    text = _pages(file)["rejections"]
    assert "did not run in this process" not in text
    assert "Lines of the files that cannot be read" in text
