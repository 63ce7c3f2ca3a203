"""How numbers are shown: so that those of a column can be compared at a glance."""

import pytest

from tensorplay.service.pages.formats import duration, milliseconds, plain, rate, share

DASH = "\N{EN DASH}"


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (None, DASH), (0.0, DASH), (0.0005, "500.0 ns"), (0.0145, "14.50 µs"), (0.99999, "1,000 µs"),
        (63.964225, "63.96 ms"), (999.99, "1,000 ms"), (12_000, "12.00 s"), (1e8, "100,000 s"),
    ],
)  # fmt: skip
def test_a_time_has_four_digits_whatever_they_are(time_ms: float | None, text: str) -> None:
    assert milliseconds(time_ms) == text


@pytest.mark.parametrize(
    ("tflops", "text"),
    [
        (None, DASH), (0.109, "109 GFLOP/s"), (0.1, "100 GFLOP/s"), (0.0006, "600 MFLOP/s"), (4.92e-05, "49.2 MFLOP/s"),
        (3e-7, "300 kFLOP/s"), (1.5, "1.50 TFLOP/s"), (1234.5, "1,234 TFLOP/s"), (0.0, "0.00 kFLOP/s"),
    ],
)  # fmt: skip
def test_a_speed_has_three_digits_and_never_an_exponent(tflops: float | None, text: str) -> None:
    assert rate(tflops) == text


def test_less_than_a_second_is_told_in_milliseconds() -> None:
    assert [duration(each) for each in (None, 0.0, 0.045, 1.0, 90.0)] == [DASH, "0.0 s", "45 ms", "1.0 s", "1 min 30 s"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("('numpy', 'nonsense')", "numpy, nonsense"), ("('numpy',)", "numpy"), ("()", "none"), ("True", "on"),
        ("None", "none"), ("0.25", "0.25"), ("it's ('as', it is)", "it's ('as', it is)"), ("<b>", "<b>"),
    ],
)  # fmt: skip
def test_values_of_events_are_as_people_write_them(text: str, told: str) -> None:
    assert plain(text) == told


@pytest.mark.parametrize(
    ("value", "text"), [(None, DASH), (0.00912, "0.91 %"), (0.5, "50 %"), (1.19e-7, "0.12 ppm"), (1e-4, "0.01 %")]
)
def test_a_part_of_a_number_is_percent_or_parts_in_a_million(value: float | None, text: str) -> None:
    assert share(value) == text
