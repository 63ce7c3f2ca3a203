"""What the page on embedding says of the handle, of the settings, and of the process that the service is in."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from tensorplay.service import Service
from tensorplay.service.app import ServiceSettings

Docs = Callable[[str], str]
Rows = Callable[..., list[list[str]]]

_LEAVES_ALONE = """
import logging, signal, sys, threading
import prometheus_client, tensorplay.service

def state():
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    loggers = [each for name, each in logging.root.manager.loggerDict.items() if name.startswith("uvicorn")]
    metrics = prometheus_client.generate_latest().count(b"tensorplay")
    root = logging.root.level, list(logging.root.handlers)
    return handlers, root, metrics, [getattr(each, "handlers", None) for each in loggers]

import uvicorn
before = state()
service = tensorplay.service.start()
import httpx
httpx.get(service.url + "metrics").raise_for_status()
during = state()
names = sorted(each.name for each in threading.enumerate() if each is not threading.main_thread())
service.stop()
print(before[:3] == during[:3], any(during[3]), names, len(threading.enumerate()))
"""


def test_every_name_of_the_handle_is_there(docs: Docs, rows: Rows) -> None:
    listed = [cells[0].strip("`").removesuffix("()") for cells in rows(docs("embedding.md"), "Of the handle", "What")]
    made = Service.__init__.__code__.co_names
    assert [name for name in listed if not hasattr(Service, name) and name not in made] == []


def test_every_setting_of_an_application_is_listed(docs: Docs, rows: Rows) -> None:
    listed = {cells[0].strip("`") for cells in rows(docs("embedding.md"), "`ServiceSettings(...)`")}
    assert listed == {each.name for each in fields(ServiceSettings)}


def test_signals_logging_and_metrics_of_the_process_are_left_alone(tmp_path: Path, docs: Docs) -> None:
    command = [sys.executable, "-P", "-W", "error", "-c", _LEAVES_ALONE]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    threads = ["tensorplay-lists", "tensorplay-runtime", "tensorplay-service"]
    assert (ended.stdout, ended.stderr) == (f"True False {threads} 1\n", "")
    assert "`tensorplay-service`" in docs("embedding.md")
