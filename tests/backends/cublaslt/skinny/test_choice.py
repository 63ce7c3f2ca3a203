"""The model's picks against what an H200 took, and the steps of a search."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.skinny.choice import is_possible, neighbouring, promising, reasonable, varied
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.estimate import estimate
from tensorplay.backends.cublaslt.skinny.shape import Shape, skinny_shape
from tensorplay.gemm import GemmProblem, SourceKernelId, dtype_of_name, parse_kernel_id

MEASURED = json.loads((Path(__file__).parents[3] / "data" / "skinny_h200.json").read_text())
NAMES = ("bfloat16", "float16", "float32")


def posed(name: str, m: int, n: int, k: int, **further: Any) -> Shape:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return skinny_shape(GemmProblem(dtype=dtype, m=m, n=n, k=k, device="0", **further))


def named(text: str) -> Configuration:
    kernel_id = parse_kernel_id(text)
    assert isinstance(kernel_id, SourceKernelId)
    return Configuration.of(kernel_id)


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row["problem"])
def test_among_what_was_measured_the_model_s_first_ten_are_near_the_best(row: dict[str, Any]) -> None:
    shape = posed(
        row["problem"].split()[0], row["m"], row["n"], row["k"], transpose_right="(k,n)" not in row["problem"]
    )
    times = {named(text): us for us, text in row["times"]}
    ranked = sorted(times, key=lambda each: estimate(each, shape, 132))
    assert min(times[each] for each in ranked[:10]) <= 1.05 * min(times.values())
    offered = [each for each in promising(shape, multiprocessors=132, clusters=True) if each in times]
    assert min(times[each] for each in offered) <= 1.05 * min(times.values())


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    few=st.integers(1, 16),
    many=st.integers(1, 50000),
    k=st.integers(1, 20000),
    is_along=st.booleans(),
    alignment=st.sampled_from([4, 8, 16]),
)
def test_whatever_is_promising_is_possible_once_and_needs_no_cluster_where_there_are_none(
    name: str, few: int, many: int, k: int, is_along: bool, alignment: int
) -> None:
    shape = posed(name, few, many, k, transpose_right=is_along, alignment=alignment)
    ranked = promising(shape, multiprocessors=132, clusters=False)
    assert ranked
    assert len(set(ranked)) == len(ranked)
    assert all(is_possible(each, shape) and each.split == 1 for each in ranked)
    costs = [estimate(each, shape, 132) for each in ranked]
    assert costs == sorted(costs)


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(NAMES), few=st.integers(1, 16), is_along=st.booleans(), pick=st.integers(0, 10**6))
def test_neighbours_are_possible_and_one_step_away(name: str, few: int, is_along: bool, pick: int) -> None:
    shape = posed(name, few, 4096, 4096, transpose_right=is_along)
    everything = list(reasonable(shape))
    configuration = everything[pick % len(everything)]
    beside = list(neighbouring(configuration, shape))
    assert configuration not in beside
    assert len(set(beside)) == len(beside)
    assert all(is_possible(each, shape) for each in beside)
    for each in beside:
        ratios = (each.rows / configuration.rows, each.depth_warps / configuration.depth_warps)
        assert sum(ratio != 1 for ratio in ratios) <= 1


def test_what_is_offered_first_is_the_best_of_each_kind_and_of_one_cut_few_rings() -> None:
    shape = posed("bfloat16", 2, 4096, 4096, transpose_right=True)
    ranked = promising(shape, multiprocessors=132, clusters=True)
    offered = list(varied(ranked))
    best = {mma: next(each for each in ranked if each.mma == mma) for mma in (0, 2)}
    assert set(offered[:2]) == set(best.values())
    cuts = [(each.tile, each.split) for each in offered if each.mma != 0]
    assert max(map(cuts.count, cuts)) <= 2
    assert len(set(offered)) == len(offered)


def test_a_search_can_walk_between_stages_in_registers_and_in_shared_memory() -> None:
    shape = posed("bfloat16", 8, 4096, 4096, transpose_right=True)
    ring = Configuration(mma=2, tile=32, rows=32, split=1, vec=16, stages=2, threads=256)
    assert 1 in {each.mma for each in neighbouring(ring, shape)}
    assert ring in set(neighbouring(Configuration(1, 32, 32, 1, 16, 2, 256), shape))
