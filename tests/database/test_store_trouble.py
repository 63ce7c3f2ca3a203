"""Disks and folders that do not do what is asked: reported by a load, raised by a write, nothing lost."""

import errno
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorplay.database.record import Entry, Validator
from tensorplay.database.store import ResultsStore

MakeEntry = Callable[..., Entry]
RunScript = Callable[..., str]


def test_a_missing_folder_is_an_error_that_names_it_and_is_not_made(
    tmp_path: Path, validators: tuple[Validator, ...], make_entry: MakeEntry
) -> None:
    store = ResultsStore(str(tmp_path / "missing" / "results.csv"), validators)
    report = store.load()
    assert (report.missing, report.problems) == (True, ())
    with pytest.raises(FileNotFoundError, match=r"no such folder.*missing"):
        store.append(make_entry(1))
    with pytest.raises(FileNotFoundError, match=r"no such folder.*missing"):
        store.rewrite([make_entry(1)])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_files_place_is_reported_and_the_sibling_is_used(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    path.mkdir()
    report = store.load()
    assert (report.refused, report.missing, report.entries) == (False, False, [])
    assert str(path) in report.problems[0]
    store.append(make_entry(1))
    assert store.target != str(path)
    assert list(path.iterdir()) == []
    assert store.load().entries == [make_entry(1)]


def test_a_folder_in_the_files_place_is_noticed_by_an_append_without_a_load(
    store: ResultsStore, path: Path, make_entry: MakeEntry
) -> None:
    path.mkdir()
    store.append(make_entry(1))
    assert store.load().entries == [make_entry(1)]


def test_a_pipe_in_the_files_place_blocks_nobody(store: ResultsStore, path: Path, make_entry: MakeEntry) -> None:
    os.mkfifo(path)
    assert "not a regular file" in store.load().problems[0]
    store.append(make_entry(1))
    assert store.load().entries == [make_entry(1)]


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "\ud800", "loop"])
def test_a_name_that_no_file_can_have_is_reported_and_raised_as_an_os_error(
    tmp_path: Path, validators: tuple[Validator, ...], make_entry: MakeEntry, name: str
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    store = ResultsStore(str(tmp_path / "loop" / name), validators)
    assert len(store.load().problems) >= 1
    with pytest.raises(OSError, match=r".+"):
        store.append(make_entry(1))


def test_a_full_disk_loses_nothing_that_was_acknowledged(path: Path, run_script: RunScript, header: str) -> None:
    script = """
import json, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True
path = sys.argv[1]
store = ResultsStore(path, VALIDATORS)
store.append(entry(1))
acknowledged, failed = [1], []
line = len("GemmTunableOp_Float32,taN_m10_n8_k8_bias0_devcpu,Default,0.5") + 1
for m in range(10, 40):
    size = os.path.getsize(path)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + (m * 7) % (line + 4), hard))
    for write in (lambda: store.append(entry(m)), lambda: store.rewrite([entry(m)])):
        try:
            write()
            acknowledged.append(m)
        except OSError as error:
            failed.append(error.errno)
            assert os.path.getsize(path) == size, "torn"
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert not os.path.exists(path + ".tmp")
print(json.dumps([acknowledged, failed]))
"""
    acknowledged, failed = json.loads(run_script(script, path))
    assert set(failed) == {errno.EFBIG}
    assert len(set(acknowledged)) > 1
    text = path.read_text(encoding="utf-8")
    assert text.startswith(header)
    written = [int(line.split("_m")[1].split("_")[0]) for line in text.removeprefix(header).splitlines()]
    assert sorted(set(written)) == sorted(set(acknowledged))


def test_a_full_disk_at_the_first_winner_leaves_a_new_file(path: Path, run_script: RunScript) -> None:
    script = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True
store = ResultsStore(sys.argv[1], VALIDATORS)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
try:
    store.append(entry(1))
except OSError as error:
    print(os.path.getsize(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
store.append(entry(2))
report = store.load()
print([list(found) for found in report.entries] == [list(entry(2))], report.refused)
"""
    assert run_script(script, path).split() == ["0", "True", "False"]


# What follows needs a user whom permissions stop. Root is not one, so root becomes nobody.
AS_NOBODY = """
import json, filelock
folder = sys.argv[1]
warm_up = ResultsStore(folder + "/warm/up.csv", VALIDATORS)
warm_up.append(entry(1)); warm_up.rewrite([entry(2)])
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
store = ResultsStore(folder + "/results.csv", VALIDATORS)
report = store.load()
print(len(report.entries), len(report.problems), int(report.refused), int(report.missing))
try:
    store.append(entry(7))
    store.append(entry(1, "host_numpy_threads2"))
    kernels = sorted(found.kernel for found in store.load().entries)
    print("appended", os.path.basename(store.target), *kernels)
except OSError as error:
    print(type(error).__name__)
"""


def run_as_nobody(prepare: Callable[[Path], None], run_script: RunScript) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "warm").mkdir()
        prepare(folder)
        try:
            return run_script(AS_NOBODY, folder).splitlines()
        finally:
            folder.chmod(0o700)


def test_a_read_only_folder_is_read_and_an_append_there_is_an_error(
    validators: tuple[Validator, ...], make_entry: MakeEntry, run_script: RunScript
) -> None:
    def prepare(folder: Path) -> None:
        ResultsStore(str(folder / "results.csv"), validators).append(make_entry(1))
        (folder / "results.csv").chmod(0o444)
        (folder / "results.csv.lock").chmod(0o444)
        folder.chmod(0o555)

    assert run_as_nobody(prepare, run_script) == ["1 0 0 0", "PermissionError"]


def test_a_read_only_file_in_a_writable_folder_is_read_and_the_sibling_takes_new_winners(
    validators: tuple[Validator, ...], make_entry: MakeEntry, run_script: RunScript
) -> None:
    def prepare(folder: Path) -> None:
        ResultsStore(str(folder / "results.csv"), validators).append(make_entry(1))
        (folder / "results.csv").chmod(0o444)
        folder.chmod(0o777)

    first, second = run_as_nobody(prepare, run_script)
    assert first == "1 0 0 0"
    # The later winner counts, though it stands in another file than the earlier one.
    action, target, *kernels = second.split()
    assert (action, kernels) == ("appended", ["Default", "host_numpy_threads2"])
    assert target != "results.csv"


def test_a_file_that_may_not_be_read_is_reported_and_the_sibling_is_used(
    validators: tuple[Validator, ...], make_entry: MakeEntry, run_script: RunScript
) -> None:
    def prepare(folder: Path) -> None:
        ResultsStore(str(folder / "results.csv"), validators).append(make_entry(1))
        (folder / "results.csv").chmod(0o000)
        folder.chmod(0o777)

    first, second = run_as_nobody(prepare, run_script)
    assert first == "0 1 0 0"
    assert second.startswith("appended results.")
