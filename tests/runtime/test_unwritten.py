"""What waits to be written is the parent's to write, and no forked child's."""

import os
import threading
from pathlib import Path

import pytest

from tensorplay.database import line_file
from tensorplay.database.line_file import LineFile
from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore
from tensorplay.runtime.listeners import Listeners
from tensorplay.runtime.steered_results import SteeredResults
from tensorplay.runtime.unwritten import Unwritten

VALIDATORS = (Validator("A_DEVICE", "of some kind"),)
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def entry(number: int, kernel: str = "host_numpy") -> Entry:
    return Entry("GemmTunableOp_Float32", f"taN_m{number}_n8_k8_bias0_dev0", kernel, 1.0)


def in_child(check: object) -> int:
    """Run `check` in a forked child with a limit of its own; return the child's exit code."""
    assert callable(check)
    pid = os.fork()
    if pid == 0:
        timer = threading.Timer(20, os._exit, [3])
        timer.daemon = True
        timer.start()
        code = 2
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_has_nothing_to_write_and_its_parent_still_has() -> None:
    unwritten = Unwritten()
    unwritten.add(entry(1))
    unwritten.supersede(entry(2).signature)
    unwritten.drop([entry(3).signature])
    assert in_child(lambda: not unwritten and not unwritten.drops) == 0
    assert unwritten
    assert unwritten.drops


def test_a_fork_in_the_middle_of_a_write_leaves_one_line_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "results.csv")
    results = SteeredResults("0", VALIDATORS, path, Listeners())
    results.ensure_loaded()
    results.record(entry(9), "measured here")
    inside, goes_on = threading.Event(), threading.Event()
    parent, append = os.getpid(), LineFile.append

    def slow(file: LineFile, data: bytes) -> None:
        if os.getpid() == parent:
            inside.set()
            assert goes_on.wait(20)
        append(file, data)

    monkeypatch.setattr(line_file.LineFile, "append", slow)
    writer = threading.Thread(target=results.record, args=(entry(1), "measured here"))
    writer.start()
    assert inside.wait(20)
    pid = os.fork()
    if pid == 0:
        threading.Timer(20, os._exit, [3]).start()
        code = 2
        try:
            # The parent holds the file's lock until the child is met here.
            results.record(entry(2), "measured here")
            code = 0 if results.save_pending() else 1
        finally:
            os._exit(code)
    goes_on.set()
    writer.join(20)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert results.save_pending()
    lines = [line for line in Path(path).read_text().splitlines() if line.startswith("Gemm")]
    assert sorted(lines) == sorted(f"{each.op},{each.params},{each.kernel},1.0" for each in map(entry, (1, 2, 9)))


def test_a_late_child_does_not_undo_what_was_recorded_meanwhile(tmp_path: Path) -> None:
    folder, store = tmp_path / "missing", ResultsStore(str(tmp_path / "missing" / "results.csv"), VALIDATORS)
    results = SteeredResults("0", VALIDATORS, str(folder / "results.csv"), Listeners())
    with pytest.warns(UserWarning, match="cannot write"):
        results.record(entry(1), "measured here")

    def late() -> bool:
        folder.mkdir()
        store.append(entry(1, "host_scipy"))
        return results.save_pending()

    assert in_child(late) == 0
    assert store.load().entries == [entry(1, "host_scipy")]
