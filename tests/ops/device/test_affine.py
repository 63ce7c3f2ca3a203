"""`addmm` and `linear` on the fake device: what is added is the kernel's, wherever it lies."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.cuda import grouped_mm
from tensorplay.errors import OperandError, ShapeError

Array = NDArray[Any]
Put = Callable[..., Any]
# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context")


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def close(found: Any, expected: Array) -> None:
    assert found.host.dtype == expected.dtype
    np.testing.assert_allclose(found.host, expected, rtol=1e-4, atol=1e-5)


class TestAddmm:
    @pytest.mark.parametrize("c_shape", [(4,), (3, 4), (1, 4), (3, 1), (1,), ()])
    @pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.5, 1), (1, -2.5), (2, 0), (0, 3)])
    def test_adds_whatever_broadcasts(self, cupy: Put, c_shape: tuple[int, ...], alpha: float, beta: float) -> None:
        a, b, c = random(3, 5), random(5, 4), random(*c_shape)
        expected = (beta * c + alpha * (a @ b)).astype(np.float32)
        for out in (
            None,
            np.zeros((3, 4), np.float32),
            np.zeros((3, 9), np.float32)[:, :4],
            np.zeros((4, 3), np.float32).T,
        ):
            for _ in range(2):
                given = None if out is None else cupy(out)
                found = tensorplay.addmm(cupy(c), cupy(a), cupy(b), alpha=alpha, beta=beta, out=given)
                close(found, expected)
                assert given is None or found is given

    def test_fuses_a_bias_of_the_result_s_length(self, cupy: Put, backend: Any) -> None:
        tensorplay.addmm(cupy(random(4)), cupy(random(3, 5)), cupy(random(5, 4)), alpha=2)
        tensorplay.addmm(cupy(random(4)), cupy(random(3, 5)), cupy(random(5, 4)), beta=2)
        tensorplay.addmm(cupy(random(3, 4)), cupy(random(3, 5)), cupy(random(5, 4)))
        assert [(problem.bias, problem.accumulate) for problem, _, _ in backend.launches] == [
            (True, False),
            (False, True),
            (False, True),
        ]

    def test_accumulates_in_place_and_next_to_it(self, cupy: Put) -> None:
        a, b = random(3, 5), random(5, 4)
        c = random(3, 4)
        expected = 2 * c + a @ b
        array = cupy(c)
        assert tensorplay.addmm(array, cupy(a), cupy(b), beta=2, out=array) is array
        np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5)
        memory = random(4, 4)
        expected = memory[:3] + a @ b
        tensorplay.addmm(cupy(memory[:3]), cupy(a), cupy(b), out=cupy(memory[1:]))
        np.testing.assert_allclose(memory[1:], expected, rtol=1e-4, atol=1e-5)
        padded = random(3, 9)
        expected = padded[:, :4] + a @ b
        tensorplay.addmm(cupy(padded[:, :4]), cupy(a), cupy(b), out=cupy(padded[:, 2:6]))
        np.testing.assert_allclose(padded[:, 2:6], expected, rtol=1e-4, atol=1e-5)

    def test_survives_an_output_that_overlaps_an_operand_or_the_bias(self, cupy: Put) -> None:
        a, b, bias = random(4, 4), random(4, 4, seed=1), random(4)
        expected = bias + a @ b
        tensorplay.addmm(cupy(bias), cupy(a), cupy(b), out=cupy(a))
        np.testing.assert_allclose(a, expected, rtol=1e-4, atol=1e-5)
        memory = random(16)
        expected = memory[4:8] + b @ b
        tensorplay.addmm(cupy(memory[4:8]), cupy(b), cupy(b), out=cupy(memory.reshape(4, 4)))
        np.testing.assert_allclose(memory.reshape(4, 4), expected, rtol=1e-4, atol=1e-5)

    def test_does_not_read_what_beta_0_leaves_out(self, cupy: Put) -> None:
        nothing = cupy(np.full((3, 4), np.nan, np.float32))
        out = cupy(np.full((3, 4), np.nan, np.float32))
        close(
            tensorplay.addmm(nothing, cupy(random(3, 5)), cupy(random(5, 4)), beta=0, out=out),
            random(3, 5) @ random(5, 4),
        )

    def test_of_no_products_is_what_is_added(self, cupy: Put) -> None:
        for c in (random(4), random(3, 4)):
            found = tensorplay.addmm(cupy(c), cupy(random(3, 0)), cupy(random(0, 4)), beta=2)
            close(found, np.broadcast_to(2 * c, (3, 4)))

    def test_reads_a_bias_with_steps(self, cupy: Put) -> None:
        bias = random(8)[::2]
        close(tensorplay.addmm(cupy(bias), cupy(random(3, 5)), cupy(random(5, 4))), bias + random(3, 5) @ random(5, 4))

    def test_refuses_what_does_not_fit(self, cupy: Put) -> None:
        a, b = cupy(random(3, 5)), cupy(random(5, 4))
        with pytest.raises(ShapeError, match=r"bias_or_c is \(3,\)"):
            tensorplay.addmm(cupy(random(3)), a, b)
        with pytest.raises(OperandError, match="what is added is float64"):
            tensorplay.addmm(cupy(random(4, dtype=np.float64)), a, b)
        with pytest.raises(OperandError, match="on the host"):
            tensorplay.addmm(random(4), a, b)
        with pytest.raises(OperandError, match="alpha is a FakeCupyArray"):
            tensorplay.addmm(cupy(random(4)), a, b, alpha=cupy(random(1)))
        with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
            tensorplay.addmm(cupy(random(4), 1), a, b)

    @pytest.mark.parametrize("factor", [2j, np.complex64(2j), np.complex128(1 + 5j), 10**400, "2", None])
    def test_refuses_a_factor_that_real_products_cannot_have(self, cupy: Put, factor: Any) -> None:
        a, b, c = cupy(random(3, 5)), cupy(random(5, 4)), cupy(random(3, 4))
        for name in ("alpha", "beta"):
            with pytest.raises(OperandError, match=f"addmm: {name} is .*{type(factor).__name__}"):
                tensorplay.addmm(c, a, b, **{name: factor})

    @pytest.mark.parametrize("factor", [2j, np.complex64(1 + 2j), 3, np.float64(0.5)])
    def test_takes_every_number_for_complex_products(self, cupy: Put, factor: Any) -> None:
        a, b, c = (random(*shape, dtype=np.complex64) for shape in ((3, 5), (5, 4), (3, 4)))
        close(tensorplay.addmm(cupy(c), cupy(a), cupy(b), alpha=factor), (c + factor * (a @ b)).astype(np.complex64))
        with pytest.raises(OperandError, match="alpha is too large a int"):
            tensorplay.addmm(cupy(c), cupy(a), cupy(b), alpha=10**400)


class TestLinear:
    @pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 1, 3), (0,), (2, 0)])
    @pytest.mark.parametrize("with_bias", [False, True])
    def test_folds_leading_dimensions_and_uses_the_weight_in_place(
        self, cupy: Put, backend: Any, leading: tuple[int, ...], with_bias: bool
    ) -> None:
        x, weight, bias = random(*leading, 5), random(4, 5), random(4)
        expected = x @ weight.T + (bias if with_bias else 0)
        for out in (None, np.zeros((*leading, 4), np.float32)):
            given = None if out is None else cupy(out)
            found = tensorplay.linear(cupy(x), cupy(weight), cupy(bias) if with_bias else None, out=given)
            close(found, expected.astype(np.float32))
            assert found.shape == expected.shape
        assert all(problem.transpose_right and problem.bias == with_bias for problem, _, _ in backend.launches)

    def test_copies_rows_that_do_not_follow_each_other(self, cupy: Put) -> None:
        x, weight = random(3, 4, 5)[:, :2], random(4, 5)
        close(tensorplay.linear(cupy(x), cupy(weight)), x @ weight.T)
        out = np.zeros((3, 4, 4), np.float32)[:, :2]
        tensorplay.linear(cupy(x), cupy(weight), out=cupy(out))
        np.testing.assert_allclose(out, x @ weight.T, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize(
        ("x", "weight", "bias"),
        [((3, 5), (4, 6), None), ((), (4, 5), None), ((3, 5), (5,), None), ((3, 5), (4, 5), (5,))],
    )
    def test_names_the_shapes_that_do_not_fit(self, cupy: Put, x: Any, weight: Any, bias: Any) -> None:
        with pytest.raises(ShapeError) as caught:
            tensorplay.linear(cupy(random(*x)), cupy(random(*weight)), None if bias is None else cupy(random(*bias)))
        assert str(weight) in str(caught.value)


class TestGrouped:
    def test_multiplies_pairs_of_any_sizes(self, cupy: Put) -> None:
        left = [random(3, 5), random(1, 7), random(4, 2)]
        right = [random(5, 4), random(7, 2), random(2, 6)]
        outs = [cupy(np.zeros((len(a), b.shape[1]), np.float32)) for a, b in zip(left, right, strict=True)]
        found = grouped_mm([cupy(a) for a in left], [cupy(b) for b in right])
        given = grouped_mm([cupy(a) for a in left], [cupy(b) for b in right], out=outs)
        for a, b, one, two, out in zip(left, right, found, given, outs, strict=True):
            close(one, a @ b)
            close(two, a @ b)
            assert two is out
        assert grouped_mm([], []) == []

    def test_refuses_lists_of_different_lengths_before_anything_runs(self, cupy: Put, backend: Any) -> None:
        a = cupy(random(3, 3))
        with pytest.raises(ShapeError, match="given: 2 and 1"):
            grouped_mm([a, a], [a])
        with pytest.raises(ShapeError, match="and 3 outputs"):
            grouped_mm([a], [a], out=[a, a, a])
        assert backend.launches == []
