import sys
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

figures = import_module("selection.figures")
summary = import_module("selection.summary")
part_shapes = import_module("selection.part_shapes")
part_again = import_module("selection.part_again")

EXPECTED = dict.fromkeys(figures.PARTS, 2)


def compared(item: str, speeds: dict[str, float], **further: Any) -> dict[str, Any]:
    """Return the row of a shape on which torch takes 100 us, and others so many times less."""
    first = speeds.get("first", 1.0)
    contestants: dict[str, Any] = {
        name: {
            "us": 100 / speed,
            "low": 99 / speed,
            "high": 101 / speed,
            "over_torch": speed,
            "over_first": speed / first,
            "method": "graph",
            "detail": f"kernel of {name}",
            "seconds": 0.1,
        }
        for name, speed in {"torch": 1.0, "first": 1.0, **speeds}.items()
    }
    return {
        "item": item,
        "dtype": "bfloat16",
        "bias": False,
        "bound": "bandwidth",
        "roofline_us": 50.0,
        "contestants": contestants | {"cupy": {"reason": "not installed"}},
    } | further


def complete(**changes: Any) -> dict[str, dict[str, dict[str, Any]]]:
    speeds = {"search": 1.1, "wide": 1.06, "heuristic": 1.01, "naive": 0.9, "nvmath": 1.0, "cublas": 1.05, "jax": 1.2}
    fresh = {f"{name}_over_{other}": 1.02 for name in ("wide", "search") for other in ("first", "torch")}
    rows: dict[str, dict[str, Any]] = {
        "shapes": compared("", speeds | {"jax": 1.2}),
        "fresh": fresh | {"measured": 0, "not_replayed": 0},
        "decode": {"over_best_of_8": 1.2, "copy_share": 0.95, "weight_mb": 117.0},
        "again": {"slowest_over_fastest": 1.005},
        "quality": {"share": 0.995, "short_took_s": 3.1},
        "wrong": {"recorded": 1050, "in_file": 1050, "replaced": 600, "wrong": []},
    }
    rows = {part: row | changes.get(part, {}) for part, row in rows.items()}
    return {part: {item: deepcopy(row) | {"item": item} for item in "ab"} for part, row in rows.items()}


def missed(parts: dict[str, Any]) -> list[str]:
    return [figure.name for figure in figures.figures_of(parts, EXPECTED) if figure.is_reached is False]


def measured(parts: dict[str, Any], start: str) -> float:
    (found,) = [figure for figure in figures.figures_of(parts, EXPECTED) if figure.name.startswith(start)]
    return float(found.measured)


def test_the_shapes_that_are_tuned_by_default_have_a_figure_of_their_own() -> None:
    rows = {
        "half": compared("half", {"wide": 9.0}),
        "bias": compared("bias", {"wide": 1.2}, bias=True),
        "float32": compared("float32", {"wide": 1.2}, dtype="float32"),
    }
    title = "wide over torch, the 2 shapes that are tuned without FAMILIES=all"
    assert measured({"shapes": rows}, title) == pytest.approx(1.2)


def test_all_goals_can_be_reached() -> None:
    assert missed(complete()) == []
    goals = [figure for figure in figures.figures_of(complete(), EXPECTED) if figure.goal is not None]
    assert len(goals) == 18


@pytest.mark.parametrize(
    ("part", "change", "name"),
    [
        ("fresh", {"search_over_first": 0.98}, "fresh process, worst shape: search over the first choice"),
        ("fresh", {"wide_over_torch": 0.98}, "fresh process, worst shape: wide over torch"),
        ("fresh", {"measured": 1}, "fresh process: measured"),
        ("fresh", {"not_replayed": 1}, "fresh process: calls not replayed"),
        ("decode", {"over_best_of_8": 1.1}, "decode: search over the best of 8"),
        ("decode", {"copy_share": 0.91}, "decode, weights over 100 MB"),
        ("again", {"slowest_over_fastest": 1.02}, "fresh tunings"),
        ("quality", {"share": 0.98}, "search: shapes where the short one"),
        ("wrong", {"in_file": 999}, "winners recorded"),
        ("wrong", {"wrong": [{"case": "x"}]}, "wrong results among them"),
    ],
)
def test_each_goal_can_be_missed_alone(part: str, change: dict[str, Any], name: str) -> None:
    (found,) = missed(complete(**{part: change}))
    assert found.startswith(name)


@pytest.mark.parametrize(
    ("speeds", "name"),
    [
        ({"search": 1.07, "nvmath": 1.0}, "search over torch"),
        ({"search": 1.2, "wide": 1.04}, "wide over torch"),
        ({"search": 1.2, "nvmath": 1.21}, "search over nvmath's autotune"),
        ({"search": 1.2, "cublas": 1.21}, "search over CUBLAS_GEMM_AUTOTUNE"),
    ],
)
def test_each_mean_over_the_shapes_can_be_missed_alone(speeds: dict[str, float], name: str) -> None:
    (found,) = missed(complete(shapes=compared("", {"wide": 1.06} | speeds)))
    assert found.startswith(name)


def test_one_slow_decode_shape_misses_though_the_mean_is_reached() -> None:
    parts = complete()
    parts["decode"]["a"]["over_best_of_8"], parts["decode"]["b"]["over_best_of_8"] = 0.999, 2.0
    assert missed(parts) == ["decode, worst shape: search over the best of 8 (a)"]


def test_small_weights_are_not_judged_by_the_copy() -> None:
    assert missed(complete(decode={"copy_share": 0.5, "weight_mb": 99.0})) == []


def test_who_took_no_part_in_a_shape_is_compared_on_the_others() -> None:
    parts = complete()
    parts["shapes"]["b"]["contestants"]["cublas"] = {"reason": "the classic call has no bias"}
    parts["shapes"]["a"]["contestants"]["cublas"]["us"] = 200.0
    assert measured(parts, "search over CUBLAS_GEMM_AUTOTUNE (1 shapes)") == pytest.approx(2.2)
    assert not [figure for figure in figures.figures_of(parts, EXPECTED) if "CuPy" in figure.name]


def test_a_part_that_is_missing_or_cut_short_misses() -> None:
    assert missed({}) == ["parts that are not complete"]
    parts = complete()
    del parts["quality"]["b"]
    del parts["again"]
    assert measured(parts, "parts that are not complete") == 2


@given(st.dictionaries(st.sampled_from("abc"), st.floats(1, 100), min_size=1))
def test_winners_of_one_time_are_the_same(times: dict[str, float]) -> None:
    ratio = part_again.slowest_over_fastest(times)
    assert ratio >= 1.0
    assert len(times) > 1 or ratio == 1.0


def test_rows_are_flat_with_the_same_columns_and_the_text_is_short() -> None:
    parts = complete()
    parts["shapes"]["b"]["contestants"] = {"torch": parts["shapes"]["b"]["contestants"]["torch"]}
    result = summary.result_of(parts, EXPECTED, [])
    first, second = result.rows
    assert first.keys() == second.keys()
    assert (first["search/torch"], second["search/torch"], second["roofline share"]) == (1.1, None, None)
    assert first["roofline share"] == pytest.approx(0.55)
    assert first["torch quartiles"] == "99..101"
    assert all(value is None or isinstance(value, str | float) for value in first.values())
    text = summary.short_text(result)
    assert max(map(len, text.splitlines())) < 160
    head = next(line for line in text.splitlines() if line.startswith("shape"))
    assert head.split()[:4] == ["shape", "torch", "us", "first"]
    assert "parts that are not complete" in summary.short_text(summary.result_of({}, EXPECTED, []))


def test_every_contestant_has_a_column() -> None:
    row = summary.flat_row(compared("", {}), {})
    assert {f"{name} us" for name in part_shapes.CONTESTANTS} <= row.keys()
    assert set(part_shapes.CONTESTANTS) >= set(figures.OPPONENTS)
