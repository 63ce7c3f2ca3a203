import numpy as np
import pytest

from tensorplay.cli.bench_product import UnsupportedShapeError, make_product
from tensorplay.cli.bench_shape import parse_shape
from tensorplay.gemm import Signature

SHAPES = [
    "float32:5x7x300",
    "float64:5x7x300:T",
    "float64:1x1x1",
    "float32:33x17x65:bias",
    "float32:33x17x65:T:bias",
    "float16:9x8x64:T:bias",
    "bfloat16:9x8x64:bias",
    "complex64:4x5x6",
]


@pytest.mark.parametrize("text", SHAPES)
def test_tensorplay_and_numpy_both_compute_the_product(text: str) -> None:
    product = make_product(parse_shape(text))
    for call in (product.ours, product.plain):
        product.erase()
        assert product.fault() != ""
        call()
        assert product.fault() == ""


@pytest.mark.parametrize("text", SHAPES)
def test_one_wrong_element_is_found_and_named(text: str) -> None:
    product = make_product(parse_shape(text))
    product.ours()
    last = tuple(size - 1 for size in product.out.shape)
    product.out[last] += 8 * np.abs(product.left).sum(axis=None)
    assert f"1 of {product.out.size} elements are wrong; the first is [{last[0]}, {last[1]}]" in product.fault()


def test_an_element_that_was_not_written_is_wrong() -> None:
    product = make_product(parse_shape("float32:3x3x3"))
    product.ours()
    product.out[1, 2] = np.nan
    assert "the first is [1, 2]" in product.fault()


@pytest.mark.parametrize(
    ("text", "op", "params"),
    [
        ("float32:5x7x3", "GemmTunableOp_Float32", "taN_m5_n7_k3_bias0_devcpu"),
        ("float64:5x7x3:T", "GemmTunableOp_Float64", "taT_m5_n7_k3_bias0_devcpu"),
        ("float16:5x7x3:T:bias", "GemmTunableOp_Float16", "taT_m5_n7_k3_bias1_devcpu"),
        ("float32:5x7x3:bias", "GemmTunableOp_Float32", "taN_m5_n7_k3_bias1_devcpu"),
    ],
)
def test_a_shape_poses_the_problem_that_it_names(text: str, op: str, params: str) -> None:
    assert make_product(parse_shape(text)).signature == Signature(op, params)


def test_every_process_multiplies_the_same_numbers() -> None:
    first, second = (make_product(parse_shape("float32:5x7x3:bias")) for _ in range(2))
    assert np.array_equal(first.left, second.left)
    assert np.array_equal(first.right, second.right)


@pytest.mark.parametrize(
    ("text", "why"),
    [("tf32:4x4x4", "no tf32 arrays"), (f"float32:{10**17}x1x{10**17}", "cannot be made")],
)
def test_what_cannot_be_made_here_says_why(text: str, why: str) -> None:
    with pytest.raises(UnsupportedShapeError, match=why):
        make_product(parse_shape(text))
