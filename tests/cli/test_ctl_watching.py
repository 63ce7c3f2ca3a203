"""`tensorplay ctl log` and `ranks`: what happened, and who was started together."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tensorplay.cli.ctl_watching import _rank_row
from tensorplay.cli.main import main
from tensorplay.runtime.context import TuningContext
from tensorplay.service import start
from tensorplay.service.rank_schemas import RankModel, RankSummary
from tensorplay.testing import ScriptedBackend, scripted_kernel

Ctl = Callable[..., Result]


@pytest.fixture
def context(tmp_path: Path) -> Iterator[TuningContext]:
    backend = ScriptedBackend({scripted_kernel(1): 1.0})
    made = TuningContext(environ={}, directory=tmp_path, backends={"0": backend})
    yield made
    made.close()


@pytest.fixture
def run_ctl(context: TuningContext) -> Iterator[Ctl]:
    with start(context=context) as service:
        environ = {"TENSORPLAY_URL": service.url, "TENSORPLAY_TOKEN": service.token}
        yield lambda *arguments: CliRunner().invoke(main, ["ctl", *arguments], env=environ)


def test_the_log_is_shown_from_a_number_on(run_ctl: Ctl, context: TuningContext) -> None:
    context.change_setting("tuning", False)
    context.change_setting("enabled", True)
    whole = json.loads(run_ctl("--json", "log").stdout)
    lines = run_ctl("log").stdout.splitlines()
    assert lines[-1] == f"{len(whole)} events"
    assert any("name=enabled" in line for line in lines)
    later = run_ctl("log", "--since", str(whole[-2]["number"])).stdout
    assert later.splitlines()[-1] == "1 event" and "name=tuning" not in later
    assert run_ctl("log", "--since", "-1").exit_code == 2


def test_a_process_that_was_started_alone_has_no_ranks_and_no_disagreements(run_ctl: Ctl) -> None:
    assert run_ctl("ranks").stdout == "0 ranks\n"
    assert run_ctl("ranks", "--disagreements").stdout == "0 shapes\n"
    assert json.loads(run_ctl("--json", "ranks").stdout) == []
    assert json.loads(run_ctl("--json", "ranks", "--disagreements").stdout) == []


def test_a_rank_that_does_not_answer_is_shown_with_the_reason() -> None:
    gone = RankModel(local_rank=1, state="unreachable", reason="start it", is_own=False, differs={}, summary=None)
    assert _rank_row(gone)[:2] == ["1", "unreachable"] and _rank_row(gone)[-1] == "start it"
    summary = RankSummary(
        id="a", pid=7, rank=0, local_rank=0, world_size=2, version="1", started_at="now", read_only=False,
        devices=["0"], stats={}, results=3, results_revision=1, rejections=2, untuned=1, settings={},
    )  # fmt: skip
    here = RankModel(
        local_rank=0, state="reachable", reason=None, is_own=True, differs={"tuning": False}, summary=summary
    )
    assert _rank_row(here) == ["0", "reachable", "7", "0", "3", "1", "2", "tuning False"]
