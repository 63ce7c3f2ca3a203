"""Where winners go, and what is measured at the same time."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.tune_round import TuneRound, Wanted, file_of, home_of, rounds
from tensorplay.cli.tuning_file import read_tuning_file
from tensorplay.database.csv_text import format_results
from tensorplay.database.filename import sibling_name
from tensorplay.database.record import Entry, Validator
from tensorplay.database.validators import digest
from tensorplay.gemm import Signature

OP = "GemmTunableOp_Float32"
BUILD = (Validator("HOST_CPU", "a"),)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def signature(m: int, device: str = "0") -> Signature:
    return Signature(OP, f"taN_m{m}_n3_k5_bias0_dev{device}")


def absolute(name: str) -> str:
    return str(Path(name).absolute())


def test_untuned_signatures_of_all_devices_are_measured_at_once_for_the_named_file() -> None:
    wanted = [Wanted(signature(1)), Wanted(signature(2, "cpu")), Wanted(signature(1))]
    (one,) = rounds(wanted, "out/tuned.csv")
    assert one == TuneRound(
        {"0": absolute("out/tuned0.csv"), "cpu": absolute("out/tunedcpu.csv")}, (signature(1), signature(2, "cpu"))
    )
    (default,) = rounds(wanted[:1], "")
    assert default.targets == {"0": absolute("tunableop_results0.csv")}
    assert rounds([], "") == []


def test_each_results_file_gets_its_own_winners_back_one_after_another_on_a_device() -> None:
    wanted = [Wanted(signature(1), "a.csv"), Wanted(signature(1), "b.csv"), Wanted(signature(1, "1"), "b.csv")]
    first, second = rounds(wanted, "")
    assert first.targets == {"0": absolute("a.csv"), "1": absolute("b.csv")}
    assert (second.targets, second.signatures) == ({"0": absolute("b.csv")}, (signature(1),))


def test_a_file_is_one_file_whatever_it_is_called() -> None:
    Path("sub").mkdir()
    wanted = [Wanted(signature(1), "a0.csv"), Wanted(signature(2), "sub/../a0.csv"), Wanted(signature(3))]
    (one,) = rounds(wanted, "a.csv")
    assert one.targets == {"0": absolute("a0.csv")}
    assert one.signatures == (signature(1), signature(2), signature(3))


def test_a_results_file_that_is_given_takes_all_winners() -> None:
    wanted = [Wanted(signature(1), "a.csv"), Wanted(signature(2), "b.csv"), Wanted(signature(3))]
    (one,) = rounds(wanted, "elsewhere.csv", given="all.csv")
    assert one.targets == {"0": absolute("all0.csv")}


@pytest.mark.parametrize(
    ("name", "device", "file"),
    [
        ("wincpu.csv", "cpu", "wincpu.csv"),
        ("win0.csv", "0", "win0.csv"),
        # The name of one of the devices stands for those of the others.
        ("win0.csv", "1", "win1.csv"),
        ("win0.csv", "cpu", "wincpu.csv"),
        # Not there, no ordinal, or that of a device that nothing is measured on.
        ("newcpu.csv", "cpu", "newcpucpu.csv"),
        ("win.csv", "0", "win0.csv"),
        ("win10.csv", "0", "win100.csv"),
        ("win%d.csv", "0", "win0.csv"),
        ("", "cpu", "tunableop_resultscpu.csv"),
    ],
)
def test_a_name_with_the_ordinal_of_a_device_means_the_file_that_is_there(name: str, device: str, file: str) -> None:
    for there in ("wincpu.csv", "win0.csv", "win.csv", "win10.csv"):
        Path(there).touch()
    assert file_of(name, device, ["cpu", "0", "1"]) == file


def test_winners_of_a_sibling_go_through_the_file_that_it_stands_in_for() -> None:
    text = format_results(BUILD, [Entry(*signature(1), "Default", 0.5)])
    sibling = sibling_name("win0.csv", digest(BUILD))
    dated = "win0.20261130.csv"
    for name in (sibling, dated):
        Path(name).write_text(text, encoding="utf-8")
    assert home_of(read_tuning_file(sibling)) == sibling
    Path("win0.csv").touch()
    assert home_of(read_tuning_file(sibling)) == "win0.csv"
    assert home_of(read_tuning_file(dated)) == dated


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from(["0", "1", "cpu"]), st.sampled_from([None, "a.csv", "b.csv"])),
        max_size=12,
    )
)
def test_every_signature_is_measured_once_for_each_of_its_files(found: list[tuple[int, str, str | None]]) -> None:
    wanted = [Wanted(signature(m, device), home) for m, device, home in found]
    planned = rounds(wanted, "")
    measured = [(each, turn.targets[TuneRound.device_of(each)]) for turn in planned for each in turn.signatures]
    assert len(measured) == len(set(measured))
    assert set(measured) == {
        (each.signature, absolute(each.home or f"tunableop_results{TuneRound.device_of(each.signature)}.csv"))
        for each in wanted
    }
