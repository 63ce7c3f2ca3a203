"""A signal handler that multiplies while its own thread holds a file's lock: it waits for nobody, nothing is lost."""

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorplay.database import line_file
from tensorplay.database.explanations import ExplanationLog, explanations_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.database.untuned import UntunedLog
from tensorplay.gemm import Signature
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.steered_results import SteeredResults
from tensorplay.runtime.untuned_files import UntunedFiles

VALIDATORS = (Validator("A_DEVICE", "of some kind"),)
Handle = Callable[[Callable[[], object]], None]
pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread"
)


def signature(number: int) -> Signature:
    return Signature("GemmTunableOp_Float32", f"taN_m{number}_n8_k8_bias0_dev0")


def entry(number: int, kernel: str = "host_numpy") -> Entry:
    return Entry(*signature(number), kernel, 1.0)


@pytest.fixture(autouse=True)
def _told_nothing() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Iterator[Handle]:
    """Let a signal come when the next bytes are written to a file, and handle it."""
    write: Any = line_file._write_all
    came: list[str] = []

    def arranged(handler: Callable[[], object]) -> None:
        def interrupted(fd: int, data: bytes) -> None:
            monkeypatch.setattr(line_file, "_write_all", write)
            os.kill(os.getpid(), signal.SIGUSR1)
            write(fd, data)

        def handled(*_: object) -> None:
            came.append("signal")
            handler()

        signal.signal(signal.SIGUSR1, handled)
        monkeypatch.setattr(line_file, "_write_all", interrupted)

    before = signal.getsignal(signal.SIGUSR1)
    yield arranged
    signal.signal(signal.SIGUSR1, before)
    assert came == ["signal"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "results.csv")


@pytest.fixture
def results(path: str) -> SteeredResults:
    made = SteeredResults("0", VALIDATORS, path, Listeners())
    made.ensure_loaded()
    return made


def kernels(path: str) -> dict[Signature, str]:
    return {each.signature: each.kernel for each in ResultsStore(path, VALIDATORS).load().entries}


def test_an_untuned_signature_of_the_handler_s_is_in_the_file(path: str, handle: Handle) -> None:
    files = UntunedFiles()
    handle(lambda: files.record(path, signature(2)))
    files.record(path, signature(1))
    assert UntunedLog(path).read().signatures == (signature(1), signature(2))


@pytest.mark.parametrize("outer", ["record", "replace", "write", "remove"])
@pytest.mark.parametrize("inner", ["record", "replace", "remove"])
def test_what_the_handler_changes_is_in_the_file(
    path: str, results: SteeredResults, handle: Handle, outer: str, inner: str
) -> None:
    for number in (1, 2, 3):
        results.record(entry(number, "host_scipy"), "measured here")

    def changed(how: str, number: int) -> object:
        if how == "remove":
            return results.remove(signature(number))
        if how == "write":
            results.results.put(entry(number))
            return results.write()
        return getattr(results, how)(entry(number), "measured here")

    handle(lambda: changed(inner, 2))
    changed(outer, 1)
    expected = {1: "host_numpy", 2: "host_numpy", 3: "host_scipy"}
    for how, number in ((outer, 1), (inner, 2)):
        if how == "remove":
            del expected[number]
    assert kernels(path) == {signature(number): kernel for number, kernel in expected.items()}
    assert results.save_pending()


def test_an_explanation_of_the_handler_s_is_in_the_file(path: str, results: SteeredResults, handle: Handle) -> None:
    report = {"verdict": "winner", "winner": "host_numpy", "winner_ms": 1.0, "candidates": []}
    told = []
    handle(lambda: told.append(results.explanations.record(signature(2), report, None)))
    told.append(results.explanations.record(signature(1), report, None))
    assert told == [True, True]
    found = ExplanationLog(explanations_name(path)).read().explanations
    assert [each.signature for each in found] == [signature(1), signature(2)]


def test_what_another_writer_of_the_file_was_interrupted_for_is_there_at_the_end(
    path: str, results: SteeredResults, handle: Handle
) -> None:
    handle(lambda: results.record(entry(2), "measured here"))
    ResultsStore(path, VALIDATORS).append(entry(1))
    assert kernels(path) == {signature(1): "host_numpy"}
    assert results.save_pending()
    assert kernels(path) == {signature(1): "host_numpy", signature(2): "host_numpy"}
