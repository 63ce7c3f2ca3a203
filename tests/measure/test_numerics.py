"""The check on real products: every honest order of summation passes, every mistake that a kernel makes does not."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.gemm import DType, dtype_of_name
from tensorplay.measure.numerics import agree

Array = NDArray[Any]

NAMES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
SUMS = ["in order", "backwards", "in blocks", "split and added", "the library's own"]


class Product(NamedTuple):
    """Operands, and how to sum their product."""

    dtype: DType
    left: Array
    right: Array
    accumulator: type[np.inexact[Any]]

    @property
    def k(self) -> int:
        return int(self.left.shape[1])

    def summed(self, places: range | list[int]) -> Array:
        """Return the sum over these places of k, one product after the other, each rounded."""
        left, right = self.left.astype(self.accumulator), self.right.astype(self.accumulator)
        total = np.zeros((left.shape[0], right.shape[1]), self.accumulator)
        for place in places:
            total += np.multiply.outer(left[:, place], right[place])
        return total

    def added(self, parts: Iterable[range]) -> Array:
        """Return the stored sum of partial sums."""
        return self.stored(reduce(np.add, [self.summed(part) for part in parts]))

    def stored(self, total: Array) -> Array:
        """Return the sum rounded to the type of the result."""
        return total.astype(self.left.dtype)

    def exact(self) -> Array:
        wide = np.clongdouble if self.dtype.is_complex else np.longdouble
        product: Array = self.left.astype(wide) @ self.right.astype(wide)
        return product

    def default(self) -> Array:
        return self.stored(self.left.astype(self.accumulator) @ self.right.astype(self.accumulator))

    def honest(self, order: str) -> Array:
        k = self.k
        if order == "in order":
            return self.stored(self.summed(range(k)))
        if order == "backwards":
            return self.stored(self.summed(range(k - 1, -1, -1)))
        if order == "in blocks":
            return self.added(range(start, min(start + 16, k)) for start in range(0, k, 16))
        if order == "split and added":
            return self.added(range(part, k, 4) for part in range(4))
        return self.default()

    def verdict(self, candidate: Array, default: Array | None = None) -> bool:
        own = self.default() if default is None else default
        return agree(candidate, own, self.exact, dtype=self.dtype, k=self.k).ok


def product_of(name: str, m: int, n: int, k: int, seed: int = 0) -> Product:
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    dtype = dtype_of_name(name)
    assert dtype is not None
    rng = np.random.default_rng(seed)

    def operand(rows: int, columns: int) -> Array:
        values: Array = rng.uniform(-1.0, 1.0, (rows, columns))
        if dtype.is_complex:
            values = values + 1j * rng.uniform(-1.0, 1.0, (rows, columns))
        return values.astype(np.dtype(name))

    accumulator = np.float32 if dtype.itemsize == 2 else np.dtype(name).type
    return Product(dtype, operand(m, k), operand(k, n), accumulator)


@pytest.fixture(params=NAMES)
def product(request: pytest.FixtureRequest) -> Product:
    return product_of(request.param, 24, 40, 300)


@pytest.mark.parametrize("k", [1, 2, 17, 300, 3000])
@pytest.mark.parametrize("name", NAMES)
def test_every_honest_order_of_summation_passes(name: str, k: int) -> None:
    product = product_of(name, 12, 20, k)
    results = {order: product.honest(order) for order in SUMS}
    for default in results.values():
        assert all(product.verdict(candidate, default) for candidate in results.values())


def test_a_long_sum_of_a_wide_product_passes() -> None:
    product = product_of("float32", 64, 256, 20_000)
    assert product.verdict(product.honest("in order"))


def test_the_three_product_form_of_a_complex_product_passes() -> None:
    product = product_of("complex64", 24, 40, 1000)
    a, b, c, d = product.left.real, product.left.imag, product.right.real, product.right.imag
    one, two, three = a @ c, b @ d, (a + b) @ (c + d)
    assert product.verdict((one - two + 1j * (three - one - two)).astype(np.complex64))


Mistake = Callable[[Product, Array], Array]


def drop_tail(product: Product, right: Array) -> Array:
    return product.stored(product.summed(range(product.k - 1)))


def drop_last_block(product: Product, right: Array) -> Array:
    return product.stored(product.summed(range(product.k - 8)))


def swap_rows(product: Product, right: Array) -> Array:
    return right[[1, 0, *range(2, len(right))]]


def leave_one_unwritten(product: Product, right: Array) -> Array:
    right[-1, -1] = np.nan
    return right


def leave_a_tile_unwritten(product: Product, right: Array) -> Array:
    right[-8:, -8:] = np.nan
    return right


def double_alpha(product: Product, right: Array) -> Array:
    return product.stored(2.0 * product.summed(range(product.k)))


def forget_alpha_sign(product: Product, right: Array) -> Array:
    return -right


def return_zeros(product: Product, right: Array) -> Array:
    return np.zeros_like(right)


def shift_columns(product: Product, right: Array) -> Array:
    return np.roll(right, 1, axis=1)


def spoil_one_element(product: Product, right: Array) -> Array:
    right[3, 5] = right[3, 5] + right.dtype.type(1.0)
    return right


def overflow_one_element(product: Product, right: Array) -> Array:
    right[3, 5] = np.inf
    return right


MISTAKES = [
    drop_tail,
    drop_last_block,
    swap_rows,
    leave_one_unwritten,
    leave_a_tile_unwritten,
    double_alpha,
    forget_alpha_sign,
    return_zeros,
    shift_columns,
    spoil_one_element,
    overflow_one_element,
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_mistake_of_a_kernel_passes(product: Product, mistake: Mistake) -> None:
    assert not product.verdict(mistake(product, product.default().copy()))


@pytest.mark.parametrize("k", [1000, 8000])
@pytest.mark.parametrize("name", NAMES)
def test_one_dropped_summand_of_a_long_sum_does_not_pass(name: str, k: int) -> None:
    product = product_of(name, 24, 40, k)
    assert not product.verdict(product.stored(product.summed(range(k - 1))))


@pytest.mark.parametrize(("name", "lower"), [("float64", "float32"), ("complex128", "complex64")])
def test_a_product_through_a_lower_precision_does_not_pass(name: str, lower: str) -> None:
    product = product_of(name, 24, 40, 300)
    assert not product.verdict((product.left.astype(lower) @ product.right.astype(lower)).astype(name))


def test_a_product_in_tf32_is_no_product_in_float32() -> None:
    product = product_of("float32", 24, 40, 300)

    def cut(operand: Array) -> Array:
        return (operand.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)

    candidate = cut(product.left) @ cut(product.right)
    assert not product.verdict(candidate)
    tf32 = dtype_of_name("tf32")
    assert tf32 is not None
    assert product._replace(dtype=tf32).verdict(candidate)
    assert product._replace(dtype=tf32).verdict(product.default(), candidate)


def test_tf32_does_not_let_a_dropped_summand_pass() -> None:
    tf32 = dtype_of_name("tf32")
    assert tf32 is not None
    product = product_of("float32", 24, 40, 1000)._replace(dtype=tf32)
    assert not product.verdict(product.stored(product.summed(range(999))))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_a_lost_imaginary_part_does_not_pass(name: str) -> None:
    product = product_of(name, 24, 40, 300)
    candidate = product.default().copy()
    candidate.imag = 0.0
    assert not product.verdict(candidate)
    assert not product.verdict(np.ascontiguousarray(product.default().real))


def test_half_sums_do_not_pass_for_float32_sums() -> None:
    product = product_of("float16", 24, 40, 3000)
    assert not product.verdict(product._replace(accumulator=np.float16).summed(range(3000)))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_a_result_that_comes_as_float32_is_compared_as_the_half_type_it_is(name: str) -> None:
    product = product_of(name, 24, 40, 300)
    assert product.verdict(product.honest("backwards").astype(np.float32), product.default().astype(np.float32))
