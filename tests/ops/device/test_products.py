"""The whole way of a product on a device: from arrays of a library to a result of the same, on the fake device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError, ShapeError
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
Put = Callable[..., Any]
# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context")
BY_EXAMPLE = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    values = np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape)
    return (values + 1j * values[::-1] if np.dtype(dtype).kind == "c" else values).astype(dtype)


def close(found: Any, expected: Array) -> None:
    assert type(found).__module__ == "cupy"
    assert found.host.dtype == expected.dtype
    wide = found.host.astype(np.result_type(expected.dtype, np.float64))
    tolerance = 2e-2 if expected.dtype == np.float16 else 1e-4
    np.testing.assert_allclose(wide, expected.astype(wide.dtype), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_mm_measures_once_replays_and_is_right(cupy: Put, context: TuningContext, backend: Any, dtype: Any) -> None:
    a, b = random(16, 8, dtype=dtype), random(8, 24, dtype=dtype, seed=1)
    left, right, out = cupy(a), cupy(b), cupy(np.zeros((16, 24), dtype))
    for _ in range(3):
        close(tensorplay.mm(left, right), a @ b)
        assert tensorplay.mm(left, right, out=out) is out
        close(out, a @ b)
    assert context.stats()["measured"] == 1
    assert {stream for _, _, stream in backend.launches} == {0x50}
    assert len({kernel for _, kernel, _ in backend.launches}) == 1


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 9), (9, 7, 1), (1, 7, 1), (5, 1, 3)])
def test_mm_of_one_row_or_column_is_right(cupy: Put, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    for a in (random(m, k), random(k, m).T, random(m, 2 * k)[:, ::2]):
        for b in (random(k, n, seed=1), random(n, k, seed=1).T, random(2 * k, n, seed=1)[::2]):
            close(tensorplay.mm(cupy(a), cupy(b)), a @ b)


def test_views_are_used_in_place_where_a_matrix_can_lie_so(cupy: Put, backend: Any) -> None:
    for a in (random(5, 4).T, random(4, 9)[:, :5], random(9, 9)[1:5, 2:7], random(9, 9).T[1:5, 2:7]):
        for b in (random(6, 5).T, random(5, 9)[:, :6], random(9, 9)[3:8, :6]):
            memory = np.full((4, 9), 7, np.float32)
            tensorplay.mm(cupy(a), cupy(b), out=cupy(memory[:, 2:8]))
            np.testing.assert_allclose(memory[:, 2:8], a @ b, rtol=1e-4, atol=1e-5)
            assert (memory[:, :2] == 7).all()
            assert (memory[:, 8:] == 7).all()
            assert backend.launches[-1][0].ld_out == 9


def test_other_strides_are_copied_first(cupy: Put) -> None:
    a, b = random(4, 6), random(6, 4, seed=1)
    for left, right in [(a[::-1], b[:, ::-1]), (a[:, ::2], b[::2]), (np.broadcast_to(a[:1], (4, 6)), b)]:
        for out in (np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32).T, np.zeros((4, 8), np.float32)[:, ::2]):
            given = cupy(out)
            for _ in range(2):
                assert tensorplay.mm(cupy(left), cupy(right), out=given) is given
                close(given, left @ right)


def test_an_address_inside_an_element_is_copied_first(cupy: Put) -> None:
    memory = np.zeros(4 * 36 + 2, np.uint8)
    a = memory[2:].view(np.float32).reshape(6, 6)
    a[...] = random(6, 6)
    close(tensorplay.mm(cupy(a), cupy(random(6, 6))), random(6, 6) @ random(6, 6))


def test_the_alignment_of_the_worst_operand_is_in_the_signature(cupy: Put, aligned: Put, backend: Any) -> None:
    memory = aligned((65,), np.float32)
    memory[...] = 1
    tensorplay.mm(cupy(memory[1:].reshape(8, 8)), cupy(memory[:64].reshape(8, 8)))
    tensorplay.mm(cupy(memory[:64].reshape(8, 8)), cupy(memory[:64].reshape(8, 8)))
    assert [problem.alignment for problem, _, _ in backend.launches] == [4, 16]


def test_an_output_that_overlaps_an_operand_gets_the_right_result(cupy: Put) -> None:
    for _ in range(2):
        a, b = random(6, 6), random(6, 6, seed=1)
        expected = a @ b
        tensorplay.mm(cupy(a), cupy(b), out=cupy(a))
        np.testing.assert_allclose(a, expected, rtol=1e-4)
        both = random(8, 6)
        expected = both[:6] @ b
        tensorplay.mm(cupy(both[:6]), cupy(b), out=cupy(both[2:]))
        np.testing.assert_allclose(both[2:], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_empty_products_are_zero(cupy: Put, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    close(tensorplay.mm(cupy(random(m, k)), cupy(random(k, n))), np.zeros((m, n), np.float32))


def test_half_precision_can_be_stored_wider(cupy: Put, backend: Any) -> None:
    a, b, out = random(4, 4, dtype=np.float16), random(4, 4, dtype=np.float16), np.zeros((4, 4), np.float32)
    tensorplay.mm(cupy(a), cupy(b), out=cupy(out))
    np.testing.assert_allclose(out, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=1e-6)
    assert backend.launches[0][0].out_dtype.name == "float32"


class TestMatmul:
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ((3,), (3,)),
            ((3,), (3, 4)),
            ((2, 3), (3,)),
            ((2, 3), (3, 4)),
            ((5, 2, 3), (3,)),
            ((5, 2, 3), (3, 4)),
            ((7, 5, 2, 3), (3, 4)),
            ((5, 2, 3), (5, 3, 4)),
            ((1, 2, 3), (5, 3, 4)),
            ((5, 2, 3), (1, 3, 4)),
            ((2, 3), (5, 3, 4)),
            ((3,), (5, 3, 4)),
            ((0, 2, 3), (3, 4)),
            ((5, 2, 0), (0, 4)),
            ((4, 1, 2, 3), (1, 5, 3, 4)),
            ((4, 5, 2, 3), (4, 5, 3, 4)),
        ],
    )
    def test_equals_numpy_for_every_rank(self, cupy: Put, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        a, b = random(*left), random(*right, seed=1)
        for _ in range(2):
            found = tensorplay.matmul(cupy(a), cupy(b))
            assert found.shape == np.shape(a @ b)
            close(found, np.asarray(a @ b))
        out = cupy(np.zeros(np.shape(a @ b), np.float32))
        assert tensorplay.matmul(cupy(a), cupy(b), out=out) is out
        close(out, np.asarray(a @ b))

    def test_a_stack_by_one_matrix_is_one_tall_product(self, cupy: Put, backend: Any) -> None:
        tensorplay.matmul(cupy(random(5, 2, 3)), cupy(random(3, 4)))
        assert [(problem.m, problem.batch) for problem, _, _ in backend.launches] == [(10, 1)]

    @pytest.mark.parametrize(
        ("left", "right"), [((), (3,)), ((2, 3), (4, 5)), ((3,), (4,)), ((2, 2, 3), (5, 3, 4)), ((5, 2, 3), (4, 3))]
    )
    def test_names_both_shapes_when_they_do_not_fit(
        self, cupy: Put, left: tuple[int, ...], right: tuple[int, ...]
    ) -> None:
        with pytest.raises(ShapeError) as caught:
            tensorplay.matmul(cupy(random(*left)), cupy(random(*right)))
        assert str(left) in str(caught.value)
        assert str(right) in str(caught.value)


def test_bmm_takes_stacks_shared_and_padded(cupy: Put) -> None:
    a, b = random(3, 4, 5), random(3, 5, 6, seed=1)
    for left in (a, np.broadcast_to(a[:1], a.shape), random(3, 4, 9)[..., :5], random(3, 5, 4).swapaxes(1, 2), a[::-1]):
        for right in (b, np.broadcast_to(b[:1], b.shape), random(5, 3, 6).swapaxes(0, 1)):
            close(tensorplay.bmm(cupy(left), cupy(right)), left @ right)
    memory = np.zeros((4, 3, 6), np.float32)
    tensorplay.bmm(cupy(a), cupy(b), out=cupy(memory.swapaxes(0, 1)))
    np.testing.assert_allclose(memory.swapaxes(0, 1), a @ b, rtol=1e-4, atol=1e-5)


@BY_EXAMPLE
@given(data=st.data(), sizes=st.tuples(*(st.integers(0, 4) for _ in range(3))))
def test_any_two_views_multiply_as_in_numpy(cupy: Put, data: st.DataObject, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes

    def drawn(rows: int, columns: int, seed: int) -> Array:
        step, gap, turned = data.draw(st.tuples(st.sampled_from([1, 2, -1]), st.integers(0, 2), st.booleans()))
        rows, columns = (columns, rows) if turned else (rows, columns)
        array = random(rows, (columns + gap) * abs(step), seed=seed)[:, ::step][:, :columns]
        return array.T if turned else array

    a, b, out = drawn(m, k, 0), drawn(k, n, 1), drawn(m, n, 2)
    tensorplay.mm(cupy(a), cupy(b), out=cupy(out))
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


class TestRefusals:
    def test_operands_on_the_host_and_a_device(self, cupy: Put) -> None:
        a = random(3, 3)
        for left, right, out in [(cupy(a), a, None), (a, cupy(a), None), (cupy(a), [[1.0] * 3] * 3, None)]:
            with pytest.raises(OperandError, match="on the host"):
                tensorplay.mm(left, right, out=out)
        with pytest.raises(OperandError, match=r"numpy.ndarray on the host"):
            tensorplay.mm(cupy(a), cupy(a), out=a)  # what is refused
        with pytest.raises(OperandError, match=r"FakeCupyArray on a GPU"):
            tensorplay.mm(a, a, out=cupy(a))

    def test_operands_on_two_devices(self, cupy: Put) -> None:
        a = random(3, 3)
        with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
            tensorplay.mm(cupy(a), cupy(a, 1))
        with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
            tensorplay.mm(cupy(a), cupy(a), out=cupy(random(3, 3), 1))

    def test_types_that_differ_or_that_nothing_multiplies(self, cupy: Put) -> None:
        a = random(3, 3)
        with pytest.raises(OperandError, match="float32 and float64"):
            tensorplay.mm(cupy(a), cupy(a.astype(np.float64)))
        with pytest.raises(OperandError, match="int32"):
            tensorplay.mm(cupy(a.astype(np.int32)), cupy(a.astype(np.int32)))

    def test_shapes_that_do_not_fit(self, cupy: Put) -> None:
        with pytest.raises(ShapeError, match=r"\(2, 3\) and \(4, 5\)"):
            tensorplay.mm(cupy(random(2, 3)), cupy(random(4, 5)))
        with pytest.raises(ShapeError, match=r"out is \(2, 2\)"):
            tensorplay.mm(cupy(random(2, 3)), cupy(random(3, 5)), out=cupy(random(2, 2)))

    def test_a_device_without_a_backend(self, cupy: Put) -> None:
        with pytest.raises(OperandError, match="cannot be multiplied here: "):
            tensorplay.mm(cupy(random(3, 3), 2), cupy(random(3, 3), 2))


def test_the_second_device_has_its_own_results(cupy: Put, context: TuningContext) -> None:
    a = random(4, 4)
    for device in (0, 1):
        tensorplay.mm(cupy(a, device), cupy(a, device))
    assert [params for _, params, _, _ in context.get_results()] == [
        "taN_m4_n4_k4_bias0_dev0",
        "taN_m4_n4_k4_bias0_dev1",
    ]


class TestCapture:
    def test_what_is_not_settled_is_decided_anew(self, cupy: Put, context: TuningContext, backend: Any) -> None:
        context.tuning_disable()
        a = cupy(random(4, 4))
        for _ in range(2):
            tensorplay.mm(a, a)
        assert context.stats()["pinned"] == 0
        backend.is_capture_live = True
        close(tensorplay.mm(a, a), random(4, 4) @ random(4, 4))
        assert context.stats()["pinned"] == 1

    def test_a_launch_that_fails_falls_back(self, cupy: Put, context: TuningContext, backend: Any) -> None:
        a = random(4, 4)
        tensorplay.mm(cupy(a), cupy(a))
        backend.broken = {backend.launches[-1][1]}
        close(tensorplay.mm(cupy(a), cupy(a)), a @ a)
        assert context.stats()["fallback"] == 1

    def test_with_the_feature_off_a_selection_is_kept(self, cupy: Put, context: TuningContext) -> None:
        context.disable()
        a = random(4, 4)
        for _ in range(3):
            close(tensorplay.mm(cupy(a), cupy(a)), a @ a)
        assert context.stats()["selected_in_process"] == 3
        assert len(context.plans) == 1
