"""Several processes on one file, and processes that are killed."""

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore

MakeEntry = Callable[..., Entry]
RunScript = Callable[..., str]
StartScript = Callable[..., subprocess.Popen[str]]

WRITE_A_HUNDRED = """
path, start = sys.argv[1], int(sys.argv[2])
store = ResultsStore(path, VALIDATORS)
store.load()
print("ready", flush=True)
sys.stdin.readline()
for m in range(start, start + 100):
    store.append(entry(m))
print("done", flush=True)
"""


def let_go(processes: list[subprocess.Popen[str]]) -> None:
    """Wait until every process is ready, start them at once, and wait until all have ended well."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        output, _ = process.communicate(timeout=50)
        assert (output, process.returncode) == ("done\n", 0)


def test_eight_processes_lose_nothing_and_write_one_header(
    path: Path, header: str, start_script: StartScript, make_entry: MakeEntry
) -> None:
    starts = range(1000, 9000, 1000)
    let_go([start_script(WRITE_A_HUNDRED, path, start) for start in starts])
    wanted = [make_entry(m) for start in starts for m in range(start, start + 100)]
    text = path.read_text(encoding="utf-8")
    assert text.startswith(header)
    lines = text.removeprefix(header).splitlines()
    assert sorted(lines) == sorted(f"{entry.op},{entry.params},{entry.kernel},0.5" for entry in wanted)


def test_a_rewrite_while_others_append_loses_nothing(
    path: Path, store: ResultsStore, start_script: StartScript, make_entry: MakeEntry
) -> None:
    processes = [start_script(WRITE_A_HUNDRED, path, start) for start in (1000, 2000)]
    ended = threading.Event()
    rewrites: list[int] = []

    def rewrite() -> None:
        while not ended.is_set():
            store.rewrite([make_entry(1, time_ms=float(len(rewrites)))])
            rewrites.append(1)
            # Whoever asks for the lock again at once leaves the others little chance to find it free.
            ended.wait(0.002)

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        let_go(processes)
    finally:
        ended.set()
        thread.join()
    assert len(rewrites) > 1
    report = store.load()
    wanted = [make_entry(m) for start in (1000, 2000) for m in range(start, start + 100)]
    assert sorted(entry for entry in report.entries if entry.params != make_entry(1).params) == sorted(wanted)
    assert report.bad_lines == ()


def test_threads_with_one_store_and_with_their_own_lose_nothing(
    path: Path, store: ResultsStore, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    def append(own: ResultsStore, start: int) -> None:
        for m in range(start, start + 25):
            own.append(make_entry(m))

    stores = [store, store, ResultsStore(str(path), validators), ResultsStore(str(path), validators)]
    threads = [threading.Thread(target=append, args=(own, 100 * n)) for n, own in enumerate(stores, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = store.load()
    assert sorted(report.entries) == sorted(make_entry(m) for n in range(1, 5) for m in range(100 * n, 100 * n + 25))
    assert (report.bad_lines, report.refused) == ((), False)


KILL_WRITERS = """
import json, random, signal, time
path, kills = sys.argv[1], int(sys.argv[2])
ResultsStore(path, VALIDATORS).load()
acknowledged, problems = [], []
for turn in range(1, kills + 1):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        store = ResultsStore(path, VALIDATORS)
        if turn % 2:
            store.load()
        for m in range(10_000 * turn, 10_000 * turn + 9_000):
            if m % 5 == 4:
                store.rewrite([entry(m)])
            else:
                store.append(entry(m))
            os.write(writing, b"%d\\n" % m)
        os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        acknowledged += [int(pipe.readline()) for _ in range(turn % 7)]
        time.sleep(random.random() * 0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        acknowledged += map(int, pipe)
    report = ResultsStore(path, VALIDATORS).load()
    if report.refused or report.problems:
        problems.append([turn, report.refused, report.problems])
print(json.dumps([acknowledged, problems]))
"""


def kill_and_check(
    kills: int, store: ResultsStore, path: Path, header: str, run_script: RunScript, one_more: Entry
) -> None:
    acknowledged, problems = json.loads(run_script(KILL_WRITERS, path, kills))
    assert problems == []
    assert len(acknowledged) >= sum(turn % 7 for turn in range(1, kills + 1))
    store.append(one_more)
    report = store.load()
    assert report.bad_lines == ()
    assert one_more in report.entries
    found = {int(entry.params.split("_")[1][1:]) for entry in report.entries}
    assert set(acknowledged) <= found
    # A winner may be there whose writer was killed before it could say so: one for each kill.
    assert len(found) <= len(acknowledged) + kills + 1
    assert path.read_text(encoding="utf-8").startswith(header)


def test_thirty_killed_writers_lose_nothing_that_was_acknowledged(
    store: ResultsStore, path: Path, header: str, run_script: RunScript, make_entry: MakeEntry
) -> None:
    kill_and_check(30, store, path, header, run_script, make_entry(5))


@pytest.mark.nightly
def test_three_hundred_killed_writers_lose_nothing_that_was_acknowledged(
    store: ResultsStore, path: Path, header: str, run_script: RunScript, make_entry: MakeEntry
) -> None:
    kill_and_check(300, store, path, header, run_script, make_entry(5))


def test_a_forked_child_and_its_parent_go_on_writing(path: Path, run_script: RunScript) -> None:
    script = """
store = ResultsStore(sys.argv[1], VALIDATORS)
store.append(entry(1))
children = []
for n in (1, 2, 3):
    child = os.fork()
    if child == 0:
        for m in range(100 * n, 100 * n + 20):
            store.append(entry(m))
        os._exit(0)
    children.append(child)
for m in range(20, 40):
    store.append(entry(m))
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
report = ResultsStore(sys.argv[1], VALIDATORS).load()
print(codes, len(report.entries), len(report.bad_lines))
"""
    assert run_script(script, path).strip() == "[0, 0, 0] 81 0"


def test_reading_imports_no_lock_library(path: Path, run_script: RunScript) -> None:
    script = """
ResultsStore(sys.argv[1], VALIDATORS).load()
print(sorted({"filelock", "asyncio", "numpy", "hashlib", "tempfile"} & sys.modules.keys()))
"""
    assert run_script(script, path).strip() == "[]"
