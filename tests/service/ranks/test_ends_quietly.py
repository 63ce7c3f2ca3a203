"""A program ends without a word, whatever was asked of its service: since Python 3.12 no thread can begin then."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

MakeJob = Callable[..., Any]
THREADS = "' '.join(each.name for each in __import__('threading').enumerate())"


def test_a_program_ends_quietly_after_its_ranks_were_looked_at(make_job: MakeJob) -> None:
    job = make_job("ending")
    first, second = job.start_all(2)
    second.kill()
    with first.client() as client:
        for path in ("ranks", "api/v1/ranks", "api/v1/ranks/disagreements", "metrics"):
            assert client.get(path).status_code == 200
    # What the dead one left was removed, and no thread of the loop's own was made for that.
    assert not (job.sockets / "1.sock").exists()
    names = first.run(THREADS)
    assert "tensorplay-ranks" in names
    assert "asyncio" not in names
    assert "AnyIO" not in names
    assert first.end() == (0, "")


def test_a_program_that_was_started_alone_ends_quietly(make_job: MakeJob, tmp_path: Path) -> None:
    job = make_job("alone", folder=tmp_path)
    alone = job.start(0, TORCHELASTIC_RUN_ID="", LOCAL_RANK="", RANK="", WORLD_SIZE="")
    with alone.client() as client:
        assert client.get("ranks", headers={"Accept": "text/html"}).status_code == 200
    assert "asyncio" not in alone.run(THREADS)
    assert alone.end() == (0, "")
    shutil.rmtree(job.folder, ignore_errors=True)
