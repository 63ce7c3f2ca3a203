"""Any bytes at all as a results or untuned file: nothing raises, nothing wrong is read, nothing is passed over."""

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.database.csv_text import BadLine, parse_results, parse_untuned
from tensorplay.database.record import check_entry, check_signature

GOOD_LINES = [
    b"Validator,TP_TUNABLEOP_FORMAT,1",
    b"Validator,HOST_CPU,x, y",
    b"GemmTunableOp_Float32,taN_m8_n8_k8_bias0_devcpu,Default,0.5",
    b"GemmTunableOp_Float32,taN_m16_n8_k8_bias0_dev12_tbT,lt_id7_tile12_stages3_splitk0_red0_swizzle0_custom0_inner1_cluster1,0.033",
    b"GemmTunableOp_Tf32,taT_m16_n8_k8_bias1_dev0,host_numpy_threads2",
    b"GemmTunableOp_Float32,taN_m8_n8_k8_bias0_devcpu",
    b"# comment",
    b"",
    b"  ",
]
JUNK = st.sampled_from(
    [
        b",",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"\x85",
        b"\x1c",
        b"-",
        b"0",
        b"9",
        b"e",
        b"T",
        b"#",
        b" ",
    ]
) | st.binary(min_size=1, max_size=3)


@st.composite
def mutated_files(draw: st.DrawFn) -> bytes:
    """Return good lines with slices cut out, doubled, and junk put in."""
    ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])
    data = b"".join(
        draw(st.lists(st.sampled_from(GOOD_LINES).flatmap(lambda line: ends.map(lambda end: line + end)), max_size=6))
    )
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        stop = min(start + draw(st.integers(0, 12)), len(data))
        middle = draw(st.sampled_from([b"", data[start:stop] * 2]) | JUNK)
        data = data[:start] + middle + data[stop:]
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


FILES = st.binary(max_size=200) | mutated_files()


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines by the plainest reading: split at line feeds, one carriage return dropped."""
    lines = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def is_silent(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return not line.strip(b" \t") or line.lstrip(b" \t").startswith(b"#")


def check_bad_lines(lines: list[bytes], bad_lines: tuple[BadLine, ...]) -> list[bytes]:
    """Check that bad lines are where they say, and return the lines that were taken as good."""
    numbers = [bad.number for bad in bad_lines]
    assert numbers == sorted(set(numbers))
    assert all(lines[bad.number - 1] == bad.raw and bad.reason for bad in bad_lines)
    taken = [line for number, line in enumerate(lines, 1) if number not in set(numbers)]
    return [line for line in taken if not is_silent(line)]


def check_results(data: bytes) -> None:
    parsed = parse_results(data)
    good = check_bad_lines(lines_of(data), parsed.bad_lines)
    validators = [line for line in good if line.startswith(b"Validator,")]
    assert {f"Validator,{name},{value}".encode() for name, value in parsed.validators} == set(validators)
    entry_lines = [line for line in good if not line.startswith(b"Validator,")]
    assert len(entry_lines) == len(parsed.entries)
    for line, entry in zip(entry_lines, parsed.entries, strict=True):
        check_entry(entry)
        start, _, time = line.decode().partition(f"{entry.op},{entry.params},{entry.kernel}")[0:3]
        assert start == ""
        assert entry.time_ms == float(time[1:] or "0")


def check_untuned(data: bytes) -> None:
    parsed = parse_untuned(data)
    good = check_bad_lines(lines_of(data), parsed.bad_lines)
    assert list(parsed.signatures) == list(dict.fromkeys(tuple(line.decode().split(",")) for line in good))
    for signature in parsed.signatures:
        check_signature(signature)
        assert f"{signature.op},{signature.params}\n".encode() in data.replace(b"\r\n", b"\n")


@given(FILES)
@settings(max_examples=400, deadline=None)
def test_no_bytes_as_results_give_a_wrong_entry_or_hide_a_bad_line(data: bytes) -> None:
    check_results(data)


@given(FILES)
@settings(max_examples=400, deadline=None)
def test_no_bytes_as_untuned_file_give_a_wrong_signature_or_hide_a_bad_line(data: bytes) -> None:
    check_untuned(data)


@pytest.mark.nightly
@given(FILES)
@settings(max_examples=10_000, deadline=None)
def test_ten_thousand_results_files_give_no_wrong_entry(data: bytes) -> None:
    check_results(data)


@pytest.mark.nightly
@given(FILES)
@settings(max_examples=10_000, deadline=None)
def test_ten_thousand_untuned_files_give_no_wrong_signature(data: bytes) -> None:
    check_untuned(data)


@given(st.text(max_size=60))
def test_text_is_read_as_its_bytes_are(text: str) -> None:
    assert parse_results(text) == parse_results(text.encode())


@given(st.text(st.characters(min_codepoint=0xD7FE, max_codepoint=0xE001), min_size=1, max_size=9))
def test_lone_surrogates_in_a_text_are_bad_lines(text: str) -> None:
    parsed = parse_results(text)
    assert [bad.number for bad in parsed.bad_lines] == [1]
    assert parsed.bad_lines[0].text.encode()
