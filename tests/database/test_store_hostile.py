"""Any bytes at all as a results file, through the store: a start, one more winner, a rewrite, another start."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.database.csv_text import parse_results
from tensorplay.database.record import Entry, Validator, check_entry
from tensorplay.database.store import ResultsStore

VALIDATORS = (Validator("TP_TUNABLEOP_FORMAT", "1"), Validator("HOST_CPU", "x, y"))
HEADER = b"Validator,TP_TUNABLEOP_FORMAT,1\nValidator,HOST_CPU,x, y\n"
NEW = Entry("GemmTunableOp_Float32", "taN_m77_n8_k8_bias0_devcpu", "Default", 0.5)
PIECES = [
    HEADER,
    b"Validator,HOST_CPU,x, y\n",
    b"Validator,OTHER,1\n",
    b"GemmTunableOp_Float32,taN_m8_n8_k8_bias0_devcpu,Default,0.5\n",
    b"GemmTunableOp_Float32,taN_m8_n8_k8_bias0_devcpu,host_numpy_threads2,0.25",
    b"GemmTunableOp_Float32,taN_m9_n8_k8_bias0_devcpu,Default",
    b"nonsense\n",
    b"# note",
    b"\n",
    b"\r\n",
    b",",
    b"\xff",
    b"\xef\xbb\xbf",
]
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=7).map(b"".join),
    st.lists(st.sampled_from(PIECES[3:]), max_size=6).map(lambda pieces: HEADER + b"".join(pieces)),
    st.integers(0, len(HEADER)).map(lambda size: HEADER[:size]),
)


def check_life(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.csv"
        path.write_bytes(content)
        store = ResultsStore(str(path), VALIDATORS)
        first = store.load()
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        for entry in first.entries:
            check_entry(entry)
            assert any(line.startswith(f"{entry.op},{entry.params},{entry.kernel}".encode()) for line in lines)
        assert all(lines[bad.number - 1].removesuffix(b"\r") == bad.raw for bad in first.bad_lines)

        store.append(NEW)
        second = ResultsStore(str(path), VALIDATORS).load()
        assert sorted(second.entries) == sorted([*first.entries, NEW])
        assert second.refused == first.refused
        assert [bad.raw for bad in second.bad_lines] in ([bad.raw for bad in first.bad_lines[:n]] for n in (-1, None))

        store.rewrite([])
        third = ResultsStore(str(path), VALIDATORS).load()
        assert sorted(third.entries) == sorted(second.entries)
        assert third.bad_lines == ()
        if first.refused:
            assert path.read_bytes() == content
        else:
            kept = Path(f"{path}.rejected")
            rejected = kept.read_bytes().split(b"\n")[:-1] if kept.exists() else []
            assert set(rejected) >= {bad.raw for bad in first.bad_lines}
            assert parse_results(path.read_bytes()).validators == VALIDATORS


@given(CONTENTS)
@settings(max_examples=150, deadline=None)
def test_a_life_with_any_file_loses_no_winner_and_reads_no_wrong_one(content: bytes) -> None:
    check_life(content)


@pytest.mark.nightly
@given(CONTENTS)
@settings(max_examples=10_000, deadline=None)
def test_ten_thousand_lives_lose_no_winner(content: bytes) -> None:
    check_life(content)
