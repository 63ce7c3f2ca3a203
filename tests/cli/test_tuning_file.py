from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.cli.tuning_file import FileKind, parse_tuning_file, read_tuning_file
from tensorplay.database.record import Entry, Validator
from tensorplay.gemm import Signature

OP = "GemmTunableOp_Float32"
PARAMS = "taN_m8_n8_k8_bias0_devcpu"
WINNER = f"{OP},{PARAMS},Default,0.5\n"
UNTUNED = f"{OP},{PARAMS}\n"
VALIDATOR = "Validator,HOST_CPU,another, with a comma\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", FileKind.EMPTY),
        ("# nothing yet\n\n", FileKind.EMPTY),
        (VALIDATOR, FileKind.RESULTS),
        (WINNER, FileKind.RESULTS),
        (VALIDATOR + UNTUNED, FileKind.RESULTS),
        (UNTUNED, FileKind.UNTUNED),
        ("# by hand\r\n" + UNTUNED + "broken\n", FileKind.UNTUNED),
        ("broken\n", FileKind.UNKNOWN),
        ("\x00\x01\x02", FileKind.UNKNOWN),
        ("PK\x03\x04\n", FileKind.UNKNOWN),
    ],
)
def test_a_file_is_recognised_by_what_it_holds(text: str, kind: FileKind) -> None:
    assert parse_tuning_file("x.csv", text.encode()).kind is kind


def test_the_newest_line_of_a_signature_counts_and_the_older_are_counted() -> None:
    file = parse_tuning_file("x.csv", (VALIDATOR + WINNER + WINNER.replace("0.5", "0.25") + "broken\n").encode())
    assert file.winners == (Entry(OP, PARAMS, "Default", 0.25),)
    assert file.superseded == 1
    assert file.validators == (Validator("HOST_CPU", "another, with a comma"),)
    assert [line.number for line in file.bad_lines] == [4]


def test_an_untuned_file_gives_each_signature_once() -> None:
    file = parse_tuning_file("x.csv", (UNTUNED + UNTUNED + "broken\n").encode())
    assert file.untuned == (Signature(OP, PARAMS),)
    assert [line.number for line in file.bad_lines] == [3]


@given(
    st.binary()
    | st.lists(st.sampled_from([WINNER, UNTUNED, VALIDATOR, "x\n", "\n"])).map(lambda t: "".join(t).encode())
)
def test_any_bytes_are_some_kind_of_file(data: bytes) -> None:
    file = parse_tuning_file("x.csv", data)
    assert not (file.winners and file.untuned)
    assert file.kind is not FileKind.EMPTY or not (file.winners or file.untuned or file.bad_lines)


@pytest.mark.parametrize("name", ["missing.csv", ".", "nul\0.csv"])
def test_what_cannot_be_read_is_an_os_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(OSError):
        read_tuning_file(f"{tmp_path}/{name}")
