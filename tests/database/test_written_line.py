"""The line that a winner stands in: the one that a load takes it from, whatever else the file holds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.csv_text import format_entry, parse_results
from tensorplay.database.record import Entry
from tensorplay.database.written_line import WrittenLine, line_in, written_line

OP = "GemmTunableOp_Float32"
KERNELS = ("Default", "host_numpy", "lt_id7_tile12_stages3_splitk0_red0_swizzle0_custom0_inner1_cluster1")


def entry_of(m: int, kernel: str = KERNELS[1], time_ms: float = 0.5) -> Entry:
    return Entry(OP, f"taN_m{m}_n8_k8_bias0_devcpu", kernel, time_ms)


entries = st.builds(
    entry_of, st.sampled_from([1, 11, 111]), st.sampled_from(KERNELS), st.floats(0, 1e6, allow_subnormal=False)
)
good = entries.map(lambda entry: format_entry(entry).removesuffix("\n").encode())
others = st.sampled_from(
    [
        b"",
        b"Validator,PT,1",
        b"\xff\xfe",
        b"nonsense",
        f"# {OP},taN_m1_n8_k8_bias0_devcpu,".encode(),
        f"{OP},taN_m1_n8_k8_bias0_devcpu,host_numpy,abc".encode(),
        f"{OP},taN_m1_n8_k8_bias0_devcpu,".encode(),
    ]
)
files = st.builds(
    lambda mark, lines, end, is_ended: mark + end.join(lines) + (end if is_ended else b""),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(good | others, max_size=12),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)


@given(files)
def test_it_is_the_line_that_reading_the_file_takes_the_winner_from(data: bytes) -> None:
    winners = {entry.signature: entry for entry in parse_results(data).entries}
    for signature, entry in winners.items():
        number = line_in(data, entry)
        assert number is not None
        before = b"\n".join(data.split(b"\n")[: number - 1])
        line = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")[number - 1]
        (found,) = parse_results(line + b"\n").entries
        assert found == entry
        # None of those behind it counts.
        behind = data[len(before) :].split(b"\n", 2 if number > 1 else 1)[-1]
        assert all(each.signature != signature for each in parse_results(behind + b"#").entries)


@given(files, entries)
def test_what_the_file_does_not_say_stands_nowhere(data: bytes, entry: Entry) -> None:
    winners = {each.signature: each for each in parse_results(data).entries}
    found = winners.get(entry.signature)
    if found is None or format_entry(found) != format_entry(entry):
        assert line_in(data, entry) is None


def test_a_time_with_more_digits_than_a_file_keeps_is_found() -> None:
    entry = entry_of(4, time_ms=0.123456789)
    assert line_in(f"Validator,A,1\n\n{format_entry(entry)}".encode(), entry) == 3


def test_the_last_of_several_lines_counts_and_one_that_is_cut_does_not() -> None:
    entry = entry_of(4)
    line = format_entry(entry)
    assert line_in(f"{line}{line}{OP},{entry.params},host".encode(), entry) == 2
    assert line_in(f"{line}{format_entry(entry_of(4, KERNELS[0]))}".encode(), entry) is None


def test_a_longer_op_or_params_is_another_signature() -> None:
    entry = entry_of(1)
    assert line_in(format_entry(entry_of(11)).encode(), entry) is None
    assert line_in(f"x{format_entry(entry)}".encode(), entry) is None


def test_a_file_is_looked_at_as_it_is_now(tmp_path: Path) -> None:
    path, entry = tmp_path / "results.csv", entry_of(4)
    assert written_line(str(path), entry) is None
    path.write_text("Validator,A,1\n" + format_entry(entry))
    assert written_line(str(path), entry) == WrittenLine(str(path), 2)


@pytest.mark.parametrize("name", ["", "folder", "a\0b", "x" * 300])
def test_what_cannot_be_read_has_no_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    assert written_line(str(tmp_path / name), entry_of(4)) is None
