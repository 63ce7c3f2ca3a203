"""The file of explanations: appended to, bounded, read by anybody, and never torn."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorplay.database import line_file
from tensorplay.database.explanation import Explanation, explanation_of, format_explanation
from tensorplay.database.explanations import ExplanationLog, explanations_name, parse_explanations
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature

BUILD, OTHER = "0123abcd", "89abcdef"


def signature(m: int) -> Signature:
    return Signature("GemmTunableOp_Float32", f"taN_m{m}_n8_k8_bias0_dev0")


def explained(m: int, time_ms: float = 1.0, *, build: str = BUILD, candidates: int = 1) -> Explanation:
    report: dict[str, object] = {
        "verdict": "winner",
        "winner": "host_numpy",
        "winner_ms": time_ms,
        "candidates": [{"kernel": f"host_{place}", "median_ms": 1.0 + place} for place in range(candidates)],
    }
    return explanation_of(signature(m), build, report)


def line(m: int, time_ms: float = 1.0, *, build: str = BUILD) -> bytes:
    return format_explanation(explained(m, time_ms, build=build)).encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "winners0.explain.jsonl"


@pytest.fixture
def log(path: Path) -> ExplanationLog:
    return ExplanationLog(str(path))


@pytest.mark.parametrize(
    ("results", "name"),
    [
        ("a/tunableop_results0.csv", "a/tunableop_results0.explain.jsonl"),
        ("a/tunableop_results0.1a2b3c4d.csv", "a/tunableop_results0.1a2b3c4d.explain.jsonl"),
        ("winners", "winners.explain.jsonl"),
        ("winners.txt", "winners.txt.explain.jsonl"),
    ],
)
def test_the_file_lies_beside_the_results(results: str, name: str) -> None:
    assert explanations_name(results) == name


def test_the_last_line_of_a_signature_is_found(log: ExplanationLog, path: Path) -> None:
    for m, time_ms in ((1, 1.0), (2, 2.0), (1, 3.0)):
        log.record(explained(m, time_ms))
    assert log.find(signature(1), BUILD) == explained(1, 3.0)
    assert log.find(signature(2), BUILD) == explained(2, 2.0)
    assert log.find(signature(3), BUILD) is None
    assert path.read_bytes() == line(1) + line(2, 2.0) + line(1, 3.0)
    found = log.read()
    assert found.explanations == (explained(2, 2.0), explained(1, 3.0))
    assert (found.superseded, found.bad_lines) == (1, 0)
    assert log.path == str(path)


def test_a_signature_whose_text_begins_as_another_s_is_another(log: ExplanationLog) -> None:
    longer = Signature("GemmTunableOp_Float32", "taN_m1_n8_k8_bias0_dev0_tbT")
    log.record(explanation_of(longer, BUILD, {"verdict": "alone", "winner": "host_numpy", "candidates": []}))
    assert log.find(signature(1), BUILD) is None
    assert log.find(longer, BUILD) is not None


def test_another_build_s_explanations_are_passed_over(log: ExplanationLog) -> None:
    log.record(explained(1, 1.0))
    log.record(explained(1, 2.0, build=OTHER))
    assert log.find(signature(1), BUILD) == explained(1, 1.0)
    assert log.find(signature(1), OTHER) == explained(1, 2.0, build=OTHER)
    assert len(log.read().explanations) == 2
    assert log.forget(signature(1), OTHER)
    assert log.find(signature(1), BUILD) == explained(1, 1.0)


def test_a_missing_file_says_nothing_and_is_not_made(log: ExplanationLog, path: Path) -> None:
    assert log.read() == ((), 0, 0)
    assert log.find(signature(1), BUILD) is None
    assert not log.forget(signature(1), BUILD)
    assert list(path.parent.iterdir()) == []


def test_lines_that_cannot_be_read_are_counted_and_cost_only_themselves(log: ExplanationLog, path: Path) -> None:
    path.write_bytes(b"nonsense\n" + line(1) + b'{"op":1}\n\xff\n\n' + line(2)[:-1])
    found = log.read()
    assert (found.explanations, found.bad_lines) == ((explained(1), explained(2)), 3)
    log.record(explained(3))
    assert path.read_bytes().endswith(line(2) + line(3))


@pytest.mark.parametrize("cut", [1, 20, 100, 150])
def test_a_torn_last_line_never_joins_the_next(log: ExplanationLog, path: Path, cut: int) -> None:
    path.write_bytes(line(1) + line(2)[:cut])
    log.record(explained(3))
    assert log.read().explanations == (explained(1), explained(3))
    assert path.read_bytes() == line(1) + line(3)


def test_a_torn_line_that_is_longer_than_any_of_ours_is_taken_out_whole(log: ExplanationLog, path: Path) -> None:
    path.write_bytes(line(1) + b"x" * 1_000_000)
    log.record(explained(2))
    assert path.read_bytes() == line(1) + line(2)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=400))
def test_whatever_the_file_holds_one_more_can_be_recorded_and_found(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.explain.jsonl"
    path.write_bytes(data)
    log = ExplanationLog(str(path))
    log.record(explained(1))
    assert log.find(signature(1), BUILD) == explained(1)
    assert log.read().explanations[-1] == explained(1)


class TestALimitOfItsSize:
    def test_drops_superseded_lines_and_what_nothing_reads_first(self, path: Path) -> None:
        kept = [line(m) for m in range(1, 5)]
        path.write_bytes(b"nonsense\n" + line(3, 9.0) + line(1, 9.0) + b"".join(kept))
        log = ExplanationLog(str(path), most_bytes=path.stat().st_size)
        log.record(explained(5))
        assert path.read_bytes() == b"".join(kept) + line(5)

    def test_then_drops_the_oldest_and_leaves_room(self, path: Path) -> None:
        size = len(line(1))
        log = ExplanationLog(str(path), most_bytes=8 * size)
        for m in range(1, 9):
            log.record(explained(m))
        assert len(log.read().explanations) == 8
        log.record(explained(9))
        assert [each.signature for each in log.read().explanations] == [signature(m) for m in range(4, 10)]

    def test_is_never_passed_and_the_newest_is_always_there(self, path: Path) -> None:
        log = ExplanationLog(str(path), most_bytes=5000)
        for m in range(1, 120):
            log.record(explained(1 + m % 17, candidates=m % 9))
            assert path.stat().st_size <= 5000
            assert log.find(signature(1 + m % 17), BUILD) == explained(1 + m % 17, candidates=m % 9)

    def test_keeps_the_newest_even_where_it_alone_passes(self, path: Path) -> None:
        log = ExplanationLog(str(path), most_bytes=10)
        log.record(explained(1))
        log.record(explained(2))
        assert path.read_bytes() == line(2)


def test_forgetting_drops_every_line_of_a_signature_and_no_other(log: ExplanationLog, path: Path) -> None:
    path.write_bytes(line(1) + b"nonsense\n" + line(2) + line(1, 2.0))
    assert log.forget(signature(1), BUILD)
    assert path.read_bytes() == b"nonsense\n" + line(2)
    assert not log.forget(signature(1), BUILD)


def test_one_that_could_not_be_read_again_is_refused(log: ExplanationLog, path: Path) -> None:
    many = {f"{place}" * 8: "x" * 160 for place in range(16)}
    report: dict[str, object] = {
        "verdict": "winner",
        "winner": "host_numpy",
        "candidates": [{"kernel": "k", "median_ms": 1.0} | many for _ in range(200)],
    }
    fits = explanation_of(signature(1), BUILD, report)
    log.record(fits)
    assert log.find(signature(1), BUILD) == fits
    wide = Explanation(**{name: getattr(fits, name) for name in fits.__slots__} | {"candidates": fits.candidates * 6})
    with pytest.raises(RecordError, match="allowed: 262144"):
        log.record(wide)
    assert path.read_bytes() == format_explanation(fits).encode()


def test_a_disk_that_fails_leaves_the_file_as_it_was(
    log: ExplanationLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.record(explained(1))
    before = path.read_bytes()
    small = ExplanationLog(str(path), most_bytes=len(before))

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(line_file, "_write_all", fail)
        for each in (log, small):
            with pytest.raises(OSError, match="No space"):
                each.record(explained(2))
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.tmp"))
    log.record(explained(2))
    assert len(log.read().explanations) == 2


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    log = ExplanationLog(str(tmp_path / "nowhere" / "a.jsonl"))
    with pytest.raises(OSError, match="no such folder"):
        log.record(explained(1))
    assert log.find(signature(1), BUILD) is None


RECORD_MANY = """
import sys
from tensorplay.database.explanation import explanation_of
from tensorplay.database.explanations import ExplanationLog
from tensorplay.gemm import Signature

path, start, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
log = ExplanationLog(path, most_bytes=most)
for m in range(start, start + 60):
    candidates = [{"kernel": f"host_{place}", "median_ms": 1.0} for place in range(m % 5)]
    report = {"verdict": "winner", "winner": "host_numpy", "winner_ms": 1.0, "candidates": candidates}
    log.record(explanation_of(Signature("GemmTunableOp_Float32", f"taN_m{m}_n8_k8_bias0_dev0"), "0123abcd", report))
    print(m, flush=True)
"""


def start(path: Path, first: int, most: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RECORD_MANY, str(path), str(first), str(most)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def end_well(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.communicate(timeout=50)
    assert [process.returncode for process in processes] == [0] * len(processes)


def test_processes_lose_none_of_each_others(log: ExplanationLog, path: Path) -> None:
    processes = [start(path, 100 * place, 8 << 20) for place in (1, 2, 3)]
    end_well(processes)
    found = log.read()
    assert len(found.explanations) == 180
    assert (found.superseded, found.bad_lines) == (0, 0)


def test_processes_that_compact_the_file_at_once_keep_to_its_size_and_tear_nothing(
    log: ExplanationLog, path: Path
) -> None:
    processes = [start(path, 100 * place, 6000) for place in (1, 2, 3)]
    end_well(processes)
    assert path.stat().st_size <= 6000
    assert log.read().bad_lines == 0
    assert log.read().explanations[-1].params in {signature(100 * place + 59).params for place in (1, 2, 3)}


def test_killed_writers_leave_a_file_that_the_next_one_mends(log: ExplanationLog, path: Path) -> None:
    told: set[int] = set()
    for turn in range(1, 6):
        with start(path, 1000 * turn, 8 << 20) as process:
            assert process.stdout is not None
            told.update(int(process.stdout.readline()) for _ in range(3 * turn))
            os.kill(process.pid, signal.SIGKILL)
            told.update(map(int, process.stdout.read().split()))
    log.record(explained(1))
    found = log.read()
    assert found.bad_lines == 0
    assert {signature(m) for m in told} <= {each.signature for each in found.explanations}


def test_reading_imports_no_lock_library(path: Path, log: ExplanationLog) -> None:
    log.record(explained(1))
    script = (
        "import sys\nfrom tensorplay.database.explanations import ExplanationLog\n"
        "print(len(ExplanationLog(sys.argv[1]).read().explanations), sorted({'filelock', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "1 []\n"


def test_a_line_is_what_other_programs_read_too(path: Path, log: ExplanationLog) -> None:
    log.record(explained(1, candidates=2))
    (found,) = map(json.loads, path.read_text(encoding="ascii").splitlines())
    assert (found["params"], len(found["candidates"])) == (signature(1).params, 2)
    assert parse_explanations(path.read_bytes()).explanations[0].to_dict() == found
