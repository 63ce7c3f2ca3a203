"""The file of killers: what is read back, by whom, and what is passed over."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.killers import Death, Killer, KillerLog, killers_name, parse_killers
from tensorplay.errors import RecordError
from tensorplay.testing import scripted_kernel

OP = "GemmTunableOp_Float32"
KILLERS = st.builds(
    Killer,
    st.just(OP),
    st.integers(1, 10**6).map(lambda m: f"taN_m{m}_n3_k5_bias0_dev0"),
    st.integers(0, 1000).map(scripted_kernel),
    st.sampled_from(Death),
)


@given(st.lists(KILLERS, unique=True, max_size=20))
def test_lines_say_what_was_recorded(killers: list[Killer]) -> None:
    assert parse_killers("".join(",".join(killer) + "\n" for killer in killers).encode()) == tuple(killers)


@given(st.binary(max_size=200), KILLERS)
def test_foreign_bytes_hide_no_killer(foreign: bytes, killer: Killer) -> None:
    assert killer in parse_killers(foreign + b"\n" + ",".join(killer).encode() + b"\n" + foreign)


def test_a_killer_is_written_once_by_any_number_of_logs(tmp_path: Path) -> None:
    path = str(tmp_path / "winners0.killers.csv")
    killer = Killer(OP, "taN_m1_n3_k5_bias0_dev0", scripted_kernel(1), Death.DIED)
    assert KillerLog(path).read() == ()
    assert KillerLog(path).record(killer)
    assert not KillerLog(path).record(killer)
    assert KillerLog(path).record(killer._replace(death=Death.HUNG))
    assert KillerLog(path).read() == (killer, killer._replace(death=Death.HUNG))


def test_a_torn_last_line_never_joins_the_next(tmp_path: Path) -> None:
    path = tmp_path / "winners0.killers.csv"
    path.write_bytes(b"GemmTunableOp_Float32,taN_m1_n3")
    killer = Killer(OP, "taN_m1_n3_k5_bias0_dev0", scripted_kernel(1), Death.DIED)
    KillerLog(str(path)).record(killer)
    assert KillerLog(str(path)).read() == (killer,)


def test_what_is_no_signature_or_kernel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "winners0.killers.csv"
    with pytest.raises(RecordError, match="allowed"):
        KillerLog(str(path)).record(Killer(OP, "a,b", scripted_kernel(1), Death.DIED))
    with pytest.raises(RecordError, match="allowed"):
        KillerLog(str(path)).record(Killer(OP, "taN_m1_n3_k5_bias0_dev0", "a\nb", Death.DIED))
    assert not path.exists()


RECORD_MANY = """
import sys
from tensorplay.database.killers import Death, Killer, KillerLog
from tensorplay.testing import scripted_kernel

for number in range(20):
    params = f"taN_m{int(sys.argv[2]) + number}_n3_k5_bias0_dev0"
    KillerLog(sys.argv[1]).record(Killer("GemmTunableOp_Float32", params, scripted_kernel(1), Death.DIED))
"""


def test_processes_lose_none_of_each_others(tmp_path: Path) -> None:
    path = str(tmp_path / "winners0.killers.csv")
    command = [sys.executable, "-c", RECORD_MANY, path]
    processes = [subprocess.Popen([*command, str(100 * place + 1)]) for place in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert len(KillerLog(path).read()) == 60


def test_the_file_lies_beside_the_results() -> None:
    assert killers_name("a/winners0.csv") == "a/winners0.killers.csv"
    assert killers_name("a/winners0") == "a/winners0.killers.csv"
