import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.database.csv_text import (
    FORMAT_VALIDATOR,
    format_entry,
    format_results,
    format_untuned_line,
    parse_results,
    parse_untuned,
)
from tensorplay.database.record import Entry, Validator, check_validator
from tensorplay.errors import RecordError
from tensorplay.gemm import Signature

MakeEntry = Callable[..., Entry]

TIMES = st.floats(0, allow_nan=False, allow_infinity=False)
ENTRIES = st.builds(
    Entry,
    st.sampled_from(["GemmTunableOp_Float32", "GemmTunableOp_BFloat16"]),
    st.builds(
        "ta{}_m{}_n8_k8_bias0_dev0{}".format, st.sampled_from("NT"), st.integers(1, 99), st.sampled_from(["", "_tbT"])
    ),
    st.sampled_from(
        ["Default", "host_numpy_threads2", "lt_id7_tile1_stages3_splitk0_red0_swizzle0_custom0_inner1_cluster1"]
    ),
    TIMES,
)


def is_valid(validator: Validator) -> bool:
    try:
        check_validator(validator)
    except RecordError:
        return False
    return True


VALIDATORS = st.builds(Validator, st.text("AB_", min_size=1), st.text(min_size=1)).filter(is_valid)


def rounded(entry: Entry) -> Entry:
    return entry._replace(time_ms=float(f"{entry.time_ms:.6g}"))


@given(st.lists(ENTRIES), st.lists(VALIDATORS, unique=True))
def test_what_is_formatted_is_read_back_to_six_digits(entries: list[Entry], validators: list[Validator]) -> None:
    text = format_results(validators, entries, ["# note"])
    parsed = parse_results(text)
    assert parsed == parse_results(text.encode())
    assert parsed.entries == [rounded(entry) for entry in sorted(entries)]
    assert parsed.validators == tuple(validators)
    assert parsed.comments == ("# note",)
    assert parsed.bad_lines == ()
    assert format_results(parsed.validators, parsed.entries, parsed.comments) == format_results(
        validators, map(rounded, entries), ["# note"]
    )


@given(ENTRIES)
def test_a_line_is_one_line_with_a_plain_decimal(entry: Entry) -> None:
    line = format_entry(entry)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    time = line.rstrip("\n").split(",")[3]
    assert set(time) <= set("0123456789.")
    assert float(time) == float(f"{entry.time_ms:.6g}")


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0.033, "0.033"),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (12, "12.0"),
        (0.1 + 0.2, "0.3"),
        (1234.56789, "1234.57"),
        (1e-7, "0.0000001"),
        (2.5e22, "25000000000000000000000"),
    ],
)
def test_times_are_short_and_without_an_exponent(make_entry: MakeEntry, time_ms: float, text: str) -> None:
    assert format_entry(make_entry(8, time_ms=time_ms)).endswith(f",{text}\n")


def test_a_file_is_sorted_whatever_the_order_of_its_entries(make_entry: MakeEntry) -> None:
    entries = [make_entry(m) for m in (3, 1, 2)]
    assert format_results([FORMAT_VALIDATOR], entries) == format_results([FORMAT_VALIDATOR], reversed(entries))


@pytest.mark.parametrize("time", ["5", "0.5", "00.5", "5e-01", "0.05E+1"])
def test_plain_numbers_are_read(make_entry: MakeEntry, time: str) -> None:
    line = format_entry(make_entry(8)).replace("0.5", time)
    assert parse_results(line).entries == [make_entry(8, time_ms=float(time))]


@pytest.mark.parametrize(
    "time",
    [
        "",
        " 0.5",
        "0.5 ",
        "+0.5",
        "-0.5",
        "-0",
        ".5",
        "5.",
        "0,5",
        "0;5",
        "1_0",
        "nan",
        "Infinity",
        "1e999",
        "0x1",
        "٣",
        "0.5\0",
    ],
)
def test_whatever_else_python_calls_a_number_is_not(make_entry: MakeEntry, time: str) -> None:
    line = format_entry(make_entry(8)).replace("0.5", time)
    parsed = parse_results(line)
    assert parsed.entries == []
    assert [bad.text for bad in parsed.bad_lines] == [line.rstrip("\n")]


@pytest.mark.parametrize("separator", ["\0", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r", "\r\r\n", "\r\r"])
def test_only_line_feeds_with_or_without_one_carriage_return_end_lines(make_entry: MakeEntry, separator: str) -> None:
    line = format_entry(make_entry(8)).rstrip("\n")
    parsed = parse_results(f"{line}\n{line}{separator}{line}\n")
    assert parsed.entries[0] == make_entry(8)
    assert parsed.bad_lines[0].number == 2
    assert 1 <= len(parsed.entries) <= 2


def test_bytes_that_are_not_utf8_cost_their_line_only(make_entry: MakeEntry) -> None:
    good = format_entry(make_entry(8)).encode()
    parsed = parse_results(good + b"GemmTunableOp_Float32,\xff\xfe\n" + b"# caf\xe9\n" + good)
    assert parsed.entries == [make_entry(8)] * 2
    assert [(bad.number, bad.raw) for bad in parsed.bad_lines] == [
        (2, b"GemmTunableOp_Float32,\xff\xfe"),
        (3, b"# caf\xe9"),
    ]
    assert parsed.bad_lines[0].text == "GemmTunableOp_Float32,\\xff\\xfe"
    assert "not UTF-8" in parsed.bad_lines[0].reason


def test_equal_validators_are_one_and_contradictory_ones_are_all_there() -> None:
    text = "Validator,A,1\nValidator,B,x, y,\nValidator,A,1\nValidator,A,2\n"
    assert parse_results(text).validators == (Validator("A", "1"), Validator("B", "x, y,"), Validator("A", "2"))


@pytest.mark.parametrize(
    "line", ["Validator,", "Validator,A", "Validator,A,", "Validator,,1", "Validator,A, 1", "Validator"]
)
def test_a_malformed_validator_is_a_bad_line(line: str) -> None:
    parsed = parse_results(line + "\n")
    assert parsed.validators == ()
    assert [(bad.number, bad.text) for bad in parsed.bad_lines] == [(1, line)]


@pytest.mark.parametrize("text", ["", "\n", "# new\n", " \t\n\r\n", "\ufeff", "\ufeff# new", "#"])
def test_comments_and_blanks_alone_are_a_new_file(text: str) -> None:
    assert parse_results(text).is_blank


@pytest.mark.parametrize("text", ["x", "Validator,A,1\n", "\u2028\n", "\x0b\n", "\n\ufeff\n"])
def test_anything_else_is_not(text: str) -> None:
    assert not parse_results(text).is_blank


def test_a_huge_line_costs_neither_memory_nor_a_huge_reason() -> None:
    parsed = parse_results(
        "GemmTunableOp_Float32," + "," * 1_000_000 + "\n" + "GemmTunableOp_" + "9" * 1_000_000 + ",a,b\n"
    )
    assert [bad.number for bad in parsed.bad_lines] == [1, 2]
    assert all(len(bad.reason) <= 300 for bad in parsed.bad_lines)


def test_the_format_generation_is_the_one_that_the_oldest_files_name() -> None:
    assert FORMAT_VALIDATOR == ("TP_TUNABLEOP_FORMAT", "1")


def test_untuned_lines_are_read_back_once_each(make_entry: MakeEntry) -> None:
    one, two = make_entry(1).signature, make_entry(2).signature
    lines = format_untuned_line(two) + "# note\r\n\n" + format_untuned_line(one) + format_untuned_line(two)
    assert parse_untuned("\ufeff" + lines).signatures == (two, one)
    assert parse_untuned(lines).bad_lines == ()


@pytest.mark.parametrize(
    "line",
    [
        "GemmTunableOp_Float32",
        "GemmTunableOp_Float32,taN",
        "GemmTunableOp_Float32,taN_m8_n8_k8_bias0_devcpu,Default",
        "a,b",
        ",",
    ],
)
def test_an_untuned_line_that_is_no_signature_is_a_bad_line(line: str) -> None:
    parsed = parse_untuned(f"# first\n{line}\n")
    assert parsed.signatures == ()
    assert [(bad.number, bad.text) for bad in parsed.bad_lines] == [(2, line)]


def test_an_unended_untuned_line_may_be_cut_and_is_not_trusted() -> None:
    parsed = parse_untuned("GemmTunableOp_Float32,taN_m8_n8_k8_bias0_dev1")
    assert parsed.signatures == ()
    assert "cut" in parsed.bad_lines[0].reason
    ended = parse_untuned("GemmTunableOp_Float32,taN_m8_n8_k8_bias0_dev1\n")
    assert ended.signatures == (Signature("GemmTunableOp_Float32", "taN_m8_n8_k8_bias0_dev1"),)


def test_a_locale_with_a_decimal_comma_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    localedef = shutil.which("localedef")
    if localedef is None:
        pytest.skip("no localedef to make a locale with")
    made = subprocess.run(
        [localedef, "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")], capture_output=True, check=False
    )
    if made.returncode not in {0, 1}:
        pytest.skip("localedef has no source of a locale with a decimal comma")
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    script = """
import locale
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
from tensorplay.database.csv_text import format_entry, parse_results
line = format_entry(entry(8))
print(locale.format_string("%.1f", 0.5), line.split(",")[3], parse_results(line).entries[0].time_ms)
"""
    assert run_script(script).split() == ["0,5", "0.5", "0.5"]
