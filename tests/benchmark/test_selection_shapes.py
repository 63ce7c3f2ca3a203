import json
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.gemm import signature_of

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmark"))

shapes = import_module("selection.shapes")
roofline = import_module("selection.roofline")
random_problems = import_module("selection.random_problems")

CEILINGS = roofline.Ceilings(4e12, {"bfloat16": 8e14, "float32": 5e13, "float16": 8e14})


def test_the_lists_are_those_that_the_goals_are_set_for() -> None:
    compared, decode = shapes.read_shapes(), shapes.read_decode()
    assert (len(compared), len(decode)) == (57, 12)
    assert len(set(map(str, compared))) == 57
    assert len(set(map(str, decode))) == 12
    assert Counter(shape.dtype for shape in compared)["tf32"] == 9
    assert {shape.dtype for shape in compared if shape.bias} == {"float16"}
    assert max(shape.m for shape in decode) <= 16
    assert sum(shape.weight_nbytes > 100e6 for shape in decode) == 5


def test_a_shape_poses_the_product_by_a_transposed_weight() -> None:
    shape = shapes.SelectionShape("tf32", 16, 1024, 4096)
    assert tuple(signature_of(shape.problem)) == ("GemmTunableOp_Tf32", "taT_m16_n1024_k4096_bias0_dev0")
    assert str(shapes.SelectionShape("float16", 8, 16, 24, True)) == "8x16x24 float16 + bias"
    assert shape.problem.flops == 2 * 16 * 1024 * 4096
    with pytest.raises(ValueError, match="no data type"):
        _ = shapes.SelectionShape("int8", 1, 1, 1).problem


def test_another_list_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"shapes": [["float64", 1, 2, 3, True]]}))
    assert shapes.read_shapes(path) == (shapes.SelectionShape("float64", 1, 2, 3, True),)


@given(st.sampled_from(shapes.read_shapes() + shapes.read_decode()), st.integers(1 << 20, 1 << 28))
def test_sets_are_more_than_twice_the_cache_together_unless_they_would_be_too_many(shape: Any, cache: int) -> None:
    sets = shapes.sets_of(shape, cache)
    assert 2 <= sets <= 1024
    assert sets * shape.nbytes > 2 * cache or sets == 1024


NUMBERS = st.none() | st.integers(0, 80)


@given(NUMBERS, NUMBERS, st.none() | st.integers(1, 9))
def test_a_slice_is_read_as_python_reads_it(start: int | None, stop: int | None, step: int | None) -> None:
    first, after = ("" if number is None else str(number) for number in (start, stop))
    text = f"{first}:{after}" if step is None else f"{first}:{after}:{step}"
    items = list(range(57))
    assert shapes.sliced(items, shapes.parse_slice(text)) == items[start:stop:step]


@pytest.mark.parametrize("text", ["", "5", "a:b", "1:2:0", "-3:", "1:2:3:4", "1 :2", "٣:4", ":\n"])
def test_what_is_no_slice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no slice"):
        shapes.parse_slice(text)


def test_a_slice_that_is_wanted_comes_before_the_default() -> None:
    assert shapes.sliced("abcdef", None, slice(None, None, 5)) == ["a", "f"]
    assert shapes.sliced("abcdef", slice(1, 2), slice(None, None, 5)) == ["b"]
    assert shapes.sliced("ab", None) == ["a", "b"]


def test_the_roofline_is_the_higher_of_both_ceilings() -> None:
    decode = roofline.roofline(shapes.SelectionShape("bfloat16", 1, 4096, 14336), CEILINGS)
    assert decode.bound == "bandwidth"
    assert decode.us == pytest.approx(29.37, rel=1e-3)
    square = roofline.roofline(shapes.SelectionShape("bfloat16", 8192, 8192, 8192), CEILINGS)
    assert square.bound == "arithmetic"
    assert square.us == pytest.approx(1e6 * 2 * 8192**3 / 8e14)


def test_a_bias_is_moved_too() -> None:
    plain, biased = (shapes.SelectionShape("float16", 8, 1000, 64, bias) for bias in (False, True))
    assert roofline.moved_bytes(biased) - roofline.moved_bytes(plain) == 2000


def test_random_problems_are_different_the_same_in_every_run_and_often_deep() -> None:
    cases = random_problems.random_cases(2100)
    assert cases[:300] == random_problems.random_cases(300)
    assert len(set(cases)) == 2100
    deep = [case for case in cases if case.k >= 512]
    assert 700 < len(deep) < 1400
    assert all(min(case.m, case.n) <= 16 and case.k * max(case.m, case.n) <= 1 << 23 for case in deep)
    assert {"bfloat16", "float16", "float32", "tf32", "float64"} <= {case.dtype for case in deep}
    assert {case.operation for case in cases} == {"mm", "linear", "bias", "addmm", "bmm"}
