"""The check as a whole, on simulated kernels that multiply in both ways: whoever mishandles a part is refused."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.gemm import DType, GemmProblem, dtype_of_name
from tensorplay.measure.check_operands import ALPHA, BETA, Sizes, check_numbers
from tensorplay.measure.numerics import agree
from tensorplay.measure.tolerance import problem_tolerance

Array = NDArray[Any]

TYPES = ["float32", "tf32", "float16", "bfloat16", "float8_e4m3fn"]
LENGTHS = [16, 17, 31, 32, 33, 48, 64, 65, 128, 777, 1024, 4096, 16384]
# Alpha, beta, and what the bias is multiplied by beforehand.
WAYS = ((1.0, 1.0, 1.0), (ALPHA, BETA, -1.0))


def dtype(name: str) -> DType:
    found = dtype_of_name(name)
    assert found is not None
    return found


def rounded(values: Array, unit: float) -> Array:
    """Return the numbers rounded to a type with this unit roundoff, its range left aside."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa / unit) * unit, exponent)


class Operands(NamedTuple):
    """Check operands of a problem, exact in its types."""

    problem: GemmProblem
    left: Array
    right: Array
    c: Array
    bias: Array

    def exact(self) -> Array:
        return np.stack([finished(self, self.left @ self.right, *way) for way in WAYS])


def uniform(rng: np.random.Generator, shape: tuple[int, ...], sizes: Sizes | None = None) -> Array:
    return rng.choice((-1.0, 1.0), shape) * rng.uniform(*(sizes or (0.0, 1.0)), shape)


def operands_of(problem: GemmProblem, seed: int) -> Operands:
    rng, numbers = np.random.default_rng(seed), check_numbers(problem.k)
    left, right = uniform(rng, (problem.m, problem.k)), uniform(rng, (problem.k, problem.n))
    left[:, -1], right[-1] = uniform(rng, (problem.m,), numbers.last), uniform(rng, (problem.n,), numbers.last)
    if numbers.first:
        left[:, 0], right[0] = left[:, -1], right[-1] * numbers.first.low / numbers.last.low
    c, bias = uniform(rng, (problem.m, problem.n), numbers.addend), uniform(rng, (problem.n,), numbers.addend)
    unit = 2.0**-24 if problem.dtype.name == "tf32" else problem.dtype.unit_roundoff
    addend = 2.0**-8 if problem.dtype.itemsize == 1 else unit
    return Operands(problem, rounded(left, unit), rounded(right, unit), rounded(c, addend), rounded(bias, addend))


def gelu(values: Array, error: float = 0.0) -> Array:
    tanh = np.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3))
    return np.asarray(0.5 * values * (1 + tanh * (1 + error)))


def finished(
    operands: Operands, product: Array, alpha: float, beta: float, sign: float, *, tanh_error: float = 0.0
) -> Array:
    """Return what an epilogue makes of a product, not rounded."""
    problem = operands.problem
    result = alpha * product
    if problem.accumulate:
        result = result + beta * operands.c
    if problem.bias:
        result = result + sign * operands.bias
    if problem.activation == "relu":
        result = np.maximum(result, 0.0)
    return gelu(result, tanh_error) if problem.activation == "gelu" else result


def stored(operands: Operands, result: Array) -> Array:
    kind = operands.problem.result_type
    result = np.clip(result, -448, 448) if kind.name == "float8_e4m3fn" else result
    return rounded(result, 2.0**-24 if kind.name == "tf32" else kind.unit_roundoff)


def with_product(operands: Operands, product: Array) -> Array:
    return np.stack([stored(operands, finished(operands, product, *way)) for way in WAYS])


def right_results(operands: Operands) -> Array:
    return with_product(operands, (operands.left.astype(np.float32) @ operands.right.astype(np.float32)).astype(float))


def is_accepted(operands: Operands, candidate: Array, default: Array | None = None) -> bool:
    problem, expected = operands.problem, right_results(operands) if default is None else default
    allowed = problem_tolerance(problem)
    return agree(candidate, expected, operands.exact, dtype=problem.dtype, k=problem.k, tolerance=allowed).ok


@st.composite
def problems(draw: st.DrawFn, /, **fixed: Any) -> GemmProblem:
    name = draw(st.sampled_from(TYPES))
    is_float8 = name.startswith("float8")
    sizes = st.integers(1, 6)
    fields: dict[str, Any] = {
        "m": draw(sizes),
        "n": 16 if is_float8 else draw(sizes),
        "k": draw(st.sampled_from([k for k in LENGTHS if not is_float8 or (k % 16 == 0 and k <= 4096)])),
        "bias": draw(st.booleans()),
        "accumulate": draw(st.booleans()),
        "activation": draw(st.sampled_from(("none", "relu", "gelu"))),
        "out_dtype": dtype("bfloat16") if is_float8 and draw(st.booleans()) else None,
    }
    return GemmProblem(dtype=dtype(name), device="0", **(fields | fixed))


@given(
    problem=problems(), seed=st.integers(0, 99), count=st.integers(1, 64), factor=st.sampled_from((0, 2)),
    is_at_end=st.booleans(),
)  # fmt: skip
@settings(deadline=None)
def test_whoever_drops_or_doubles_an_end_of_the_sums_is_refused(
    problem: GemmProblem, seed: int, count: int, factor: int, is_at_end: bool
) -> None:
    operands = operands_of(problem, seed)
    end = slice(max(0, problem.k - count), None) if is_at_end else slice(0, count)
    whole, part = operands.left @ operands.right, operands.left[:, end] @ operands.right[end]
    # Of a hundred elements with a bias and a C, a ReLU hides one in both ways: nothing can be told of that one alone.
    assume(right_results(operands).any())
    assert not is_accepted(operands, with_product(operands, whole + (factor - 1) * part))


@given(problem=problems(activation="none"), seed=st.integers(0, 99), count=st.integers(1, 64))
@settings(deadline=None)
def test_a_dropped_end_shows_in_each_element_alone(problem: GemmProblem, seed: int, count: int) -> None:
    operands = operands_of(problem, seed)
    # Of the shortest of these sums all but the first product, which is as heavy.
    end = slice(max(1, problem.k - count), None)
    allowed, exact = problem_tolerance(problem), operands.exact()
    off = np.abs(operands.left[:, end] @ operands.right[end])
    # A default may be off the other way by as much, but for FP8, whose largest results are rounded by more than 16.
    share = 1 if problem.result_type.itemsize == 1 else 2
    assert (off > share * (allowed.atol + allowed.rtol * np.abs(exact))).all()


@given(
    name=st.sampled_from(TYPES[:4]), k=st.integers(1, 15), sizes=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    seed=st.integers(0, 99), count=st.integers(1, 15), addends=st.booleans(),
)  # fmt: skip
@settings(deadline=None)
def test_the_end_of_a_short_sum_shows_too(
    name: str, k: int, sizes: tuple[int, int], seed: int, count: int, addends: bool
) -> None:
    problem = GemmProblem(dtype=dtype(name), m=sizes[0], n=sizes[1], k=k, device="0", bias=addends, accumulate=addends)
    operands = operands_of(problem, seed)
    # More than the last product may cancel it in one element.
    kept = slice(0, -1 if sizes == (1, 1) else -count)
    product = operands.left[:, kept] @ operands.right[kept]
    assert not is_accepted(operands, with_product(operands, product))


Fault = Callable[[Operands, Array, tuple[float, float, float]], Array]
FAULTS: dict[str, Fault] = {
    "no bias": lambda o, product, way: finished(o._replace(bias=0 * o.bias), product, *way),
    "bias twice": lambda o, product, way: finished(o._replace(bias=2 * o.bias), product, *way),
    "scaled bias": lambda o, product, way: finished(o._replace(bias=way[0] * o.bias), product, *way),
    "no addend": lambda o, product, way: finished(o, product, way[0], 0.0, way[2]),
    "beta of one": lambda o, product, way: finished(o, product, way[0], 1.0, way[2]),
    "beta for alpha": lambda o, product, way: finished(o, product, way[1], way[0], way[2]),
    "alpha of one": lambda o, product, way: finished(o, product, 1.0, *way[1:]),
    "alpha without sign": lambda o, product, way: finished(o, product, abs(way[0]), *way[1:]),
    "alpha for all": lambda o, product, way: finished(o, product, way[0], way[0] * way[1], way[2]),
}


@pytest.mark.parametrize("fault", FAULTS)
@given(problem=problems(m=6, n=16, bias=True, accumulate=True), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_alpha_beta_addend_and_bias_show_where_they_are_not_what_they_should_be(
    fault: str, problem: GemmProblem, seed: int
) -> None:
    operands = operands_of(problem, seed)
    faulty = [FAULTS[fault](operands, operands.left @ operands.right, way) for way in WAYS]
    assert not is_accepted(operands, np.stack([stored(operands, each) for each in faulty]))


def summed(operands: Operands, kind: type[np.floating[Any]], places: range) -> Array:
    total = np.zeros((operands.problem.m, operands.problem.n), kind)
    left, right = operands.left.astype(kind), operands.right.astype(kind)
    for place in places:
        total += np.multiply.outer(left[:, place], right[place])
    return total


def cut(values: Array, unit: float) -> Array:
    """Return the numbers cut off, as tensor cores do."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.trunc(mantissa / unit) * unit, exponent)


def steps_of(operands: Operands, step: int) -> Array:
    total = np.zeros((operands.problem.m, operands.problem.n))
    for place in range(0, operands.problem.k, step):
        part = slice(place, place + step)
        total = cut(total + operands.left[:, part] @ operands.right[part], 2.0**-24)
    return total


def split_in(operands: Operands, parts: int) -> list[Array]:
    step = -(-operands.problem.k // parts)
    starts = range(0, operands.problem.k, step)
    return [operands.left[:, at : at + step] @ operands.right[at : at + step] for at in starts]


def honest_products(operands: Operands) -> Iterator[Array]:
    k = operands.problem.k
    yield summed(operands, np.float32, range(k))
    yield summed(operands, np.float32, range(k - 1, -1, -1))
    yield reduce(np.add, [part.astype(np.float32) for part in split_in(operands, 5)])
    if operands.problem.dtype.name != "float32":
        yield steps_of(operands, 8)
        yield steps_of(operands, 32)
    if operands.problem.dtype.name == "tf32":
        left, right = cut(operands.left, 2.0**-11), cut(operands.right, 2.0**-11)
        yield steps_of(operands._replace(left=left, right=right), 8)


@pytest.mark.parametrize("k", [1, 15, 16, 64, 777, 3000])
@pytest.mark.parametrize("name", TYPES[:4])
def test_every_honest_order_of_summation_is_accepted_with_every_epilogue(name: str, k: int) -> None:
    for activation, bias, accumulate in (("none", False, False), ("gelu", True, False), ("relu", True, True)):
        problem = GemmProblem(
            dtype=dtype(name), m=48, n=40, k=k, device="0", activation=activation, bias=bias, accumulate=accumulate
        )
        operands = operands_of(problem, k)
        results = [with_product(operands, product.astype(np.float64)) for product in honest_products(operands)]
        for candidate in results:
            for default in results:
                assert is_accepted(operands, candidate, default)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_fast_tangent_and_a_sum_rounded_before_the_bias_are_accepted(name: str) -> None:
    for k in (8, 64, 4096):
        problem = GemmProblem(dtype=dtype(name), m=64, n=64, k=k, device="0", activation="gelu", bias=True)
        operands = operands_of(problem, 1)
        product = operands.left @ operands.right
        for error in (2.0**-11, -(2.0**-11)):
            candidate = [stored(operands, finished(operands, product, *way, tanh_error=error)) for way in WAYS]
            assert is_accepted(operands, np.stack(candidate))
        once = [(rounded(way[0] * product, problem.dtype.unit_roundoff), way) for way in WAYS]
        candidate = [stored(operands, finished(operands, each, 1.0, *way[1:])) for each, way in once]
        assert is_accepted(operands, np.stack(candidate))


@pytest.mark.parametrize("out", ["float8_e4m3fn", "bfloat16"])
@pytest.mark.parametrize("k", [16, 128, 4096])
def test_sums_in_the_registers_of_fp8_are_accepted(k: int, out: str) -> None:
    problem = GemmProblem(dtype=dtype("float8_e4m3fn"), m=32, n=32, k=k, device="0", out_dtype=dtype(out))
    operands = operands_of(problem, 2)
    total = np.zeros((32, 32))
    for place in range(0, k, 32):
        products = operands.left[:, place : place + 32, None] * operands.right[None, place : place + 32]
        largest = np.maximum(np.abs(total), np.abs(products).max(axis=1))
        last = 2.0 ** (np.frexp(largest)[1] - 14)
        aligned = np.trunc(products / last[:, None]) * last[:, None]
        total = np.trunc((total + aligned.sum(axis=1)) / last) * last
    assert is_accepted(operands, with_product(operands, total))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("k", [64, 777, 4096])
def test_parts_of_sums_rounded_to_16_bits_are_refused(name: str, k: int) -> None:
    problem = GemmProblem(dtype=dtype(name), m=48, n=40, k=k, device="0")
    operands, unit = operands_of(problem, 3), dtype(name).unit_roundoff
    for parts in (2, 4, 16):
        total = reduce(lambda one, other: rounded(one + rounded(other, unit), unit), split_in(operands, parts))
        assert not is_accepted(operands, with_product(operands, total))


@pytest.mark.parametrize("k", [17, 64, 777])
def test_a_lower_precision_is_refused_but_where_it_is_asked_for(k: int) -> None:
    half, plain = dtype("float16"), GemmProblem(dtype=dtype("float16"), m=48, n=40, k=k, device="0")
    for problem, ok in ((plain, False), (replace(plain, accumulation=half), True)):
        operands = operands_of(problem, 4)
        product = summed(operands, np.float16, range(k)).astype(np.float64)
        assert is_accepted(operands, with_product(operands, product)) is ok
    for name, ok in (("float32", False), ("tf32", True)):
        operands = operands_of(replace(plain, dtype=dtype(name)), 5)
        product = rounded(operands.left, 2.0**-11) @ rounded(operands.right, 2.0**-11)
        assert is_accepted(operands, with_product(operands, product)) is ok
