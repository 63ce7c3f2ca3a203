"""Clients that come, hang up and come again, in a real process: nothing of them stays, and it ends at once."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmark"
# The processes that this needs are those of the benchmark, which looks for what it needs in its own folder.
sys.path.insert(0, str(BENCHMARK))

soaking = import_module("service.soak")
told = import_module("service.told")

MOST_MB = 5.0


def check(soaked: Any) -> None:
    assert soaked.grown_mb <= MOST_MB
    assert (soaked.threads, soaked.sockets, soaked.traces) == (0, 0, 0)
    # It was no silence that was listened to.
    assert soaked.told > soaked.clients


def test_streams_that_are_dropped_leave_nothing(tmp_path: Path) -> None:
    check(soaking.soak(str(tmp_path), clients=30, batches=150, wave=10, warming=210))


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_two_hundred_streams_in_the_events_of_twenty_minutes_leave_nothing(tmp_path: Path) -> None:
    soaked = soaking.soak(str(tmp_path), clients=200, batches=soaking.BATCHES_OF_20_MINUTES)
    assert (soaked.clients, soaked.happened) == (200, 6 * soaking.BATCHES_OF_20_MINUTES)
    check(soaked)


def test_a_process_stops_within_a_second_whatever_streams_are_open(tmp_path: Path) -> None:
    with (
        told.ToldProcess("service.host", directory=tmp_path) as host,
        told.ToldProcess("service.clients", directory=tmp_path) as clients,
    ):
        for _ in range(2):
            url = host.ask("start")["url"]
            assert clients.ask("open", url=url, count=50) == 50
            host.ask("wait_for_streams", wanted=50)
            ended = clients.ask("heard")["ended"]
            host.begin("happen", batches=50, pause_s=0.0)
            host.answer()
            assert host.ask("stop") <= 1.0
            told.wait_until(lambda ended=ended: clients.ask("heard")["ended"] == ended + 50, "every stream ends")
            clients.ask("drop")
        assert host.written() == ""
