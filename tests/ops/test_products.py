"""`mm`, `bmm` and `matmul` compute what NumPy computes, tuned or not, and say what does not fit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

import tensorplay
from tensorplay.errors import OperandError, ShapeError
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
pytestmark = pytest.mark.usefixtures("context")
BY_EXAMPLE = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def close(found: Array, expected: Array) -> None:
    assert found.dtype == expected.dtype
    single = np.finfo(found.dtype).eps > 1e-10 if found.dtype.kind in "fc" else False
    np.testing.assert_allclose(found, expected, rtol=1e-5 if single else 1e-12, atol=1e-5 if single else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (16, 64, 16), (1, 33, 9), (9, 33, 1), (64, 3, 64)])
def test_mm_equals_numpy_on_the_measuring_call_and_on_every_hit(dtype: Any, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype, seed=1)
    for _ in range(3):
        close(tensorplay.mm(a, b), a @ b)
    out = np.empty((m, n), dtype)
    for _ in range(3):
        assert tensorplay.mm(a, b, out=out) is out
        close(out, a @ b)


def test_transposed_and_padded_views_are_used_in_place() -> None:
    for a in (random(5, 4).T, random(4, 9)[:, :5], random(9, 9)[1:5, 2:7], random(9, 9).T[1:5, 2:7]):
        for b in (random(6, 5).T, random(5, 9)[:, :6], random(9, 9)[3:8, :6]):
            close(tensorplay.mm(a, b), a @ b)
            out = np.full((4, 9), 7, np.float32)
            tensorplay.mm(a, b, out=out[:, 2:8])
            close(out[:, 2:8], a @ b)
            assert (out[:, :2] == 7).all()
            assert (out[:, 8:] == 7).all()


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_empty_products_are_numpy_s(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    found = tensorplay.mm(random(m, k), random(k, n))
    np.testing.assert_array_equal(found, np.zeros((m, n), np.float32))


def test_an_output_that_overlaps_an_operand_gets_the_right_result() -> None:
    for _ in range(2):
        a, b = random(6, 6), random(6, 6, seed=1)
        expected = a @ b
        close(tensorplay.mm(a, b, out=a), expected)
        a = random(6, 6)
        close(tensorplay.mm(a, b, out=b), expected)
        both = random(8, 6)
        expected = both[:6] @ random(6, 6)
        close(tensorplay.mm(both[:6], random(6, 6), out=both[2:]), expected)


def test_a_read_only_output_is_refused_and_stays_as_it_is() -> None:
    a, b, out = random(4, 4), random(4, 4), np.zeros((4, 4), np.float32)
    tensorplay.mm(a, b, out=out)
    kept = out.copy()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tensorplay.mm(-a, b, out=out)
    np.testing.assert_array_equal(out, kept)


def test_read_only_operands_are_read() -> None:
    a, b = random(4, 4), random(4, 4, seed=1)
    a.flags.writeable = b.flags.writeable = False
    for _ in range(2):
        close(tensorplay.mm(a, b), a @ b)


def test_operands_that_no_plan_takes_are_numpy_s() -> None:
    a, b = random(4, 6), random(6, 4, seed=1)
    for left, right in [
        (a[::-1], b[:, ::-1]),
        (a.astype(">f4"), b.astype(">f4")),
        (a[:, ::2], b[::2]),
        (np.broadcast_to(a[:1], (4, 6)), b),
        (a, b.astype(np.float64)),
        (a.astype(np.float16), b.astype(np.float16)),
        (a.astype(object), b.astype(object)),
        (a > 0, b > 0),
    ]:
        for _ in range(2):
            found = tensorplay.mm(left, right)
            assert found.dtype == (left @ right).dtype
            np.testing.assert_allclose(found.astype(float), (left @ right).astype(float), rtol=1e-2, atol=1e-2)


def test_unaligned_operands_are_right() -> None:
    raw = np.zeros(4 * 36 + 1, np.uint8)
    a = raw[1:].view(np.float32).reshape(6, 6)
    a[...] = random(6, 6)
    assert not a.flags.aligned
    close(tensorplay.mm(random(6, 6), random(6, 6)), random(6, 6) @ random(6, 6))
    for _ in range(2):
        close(tensorplay.mm(a, random(6, 6)), random(6, 6) @ random(6, 6))
        close(tensorplay.mm(random(6, 6), a, out=a), random(6, 6) @ random(6, 6))
        a[...] = random(6, 6)


def test_lists_and_subclasses_are_numpy_s() -> None:
    assert tensorplay.mm([[1, 2]], [[3], [4]]).tolist() == [[11]]
    masked = np.ma.masked_array(random(2, 2), mask=[[False, True], [False, False]])
    assert type(tensorplay.mm(masked, masked)) is type(np.matmul(masked, masked))


def test_nan_and_infinity_spread_as_in_numpy() -> None:
    a, b = random(8, 8), random(8, 8, seed=1)
    a[2, 3], b[5, 1] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        for _ in range(2):
            out = np.full((8, 8), np.nan, np.float32)
            np.testing.assert_array_equal(np.isnan(tensorplay.mm(a, b, out=out)), np.isnan(a @ b))


@pytest.mark.parametrize(("left", "right"), [((2, 3), (4, 5)), ((2,), (2, 3)), ((2, 3, 4), (4, 5)), ((2, 3), (3,))])
def test_mm_names_both_shapes_when_they_do_not_fit(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    for _ in range(2):
        with pytest.raises(ShapeError) as caught:
            tensorplay.mm(random(*left), random(*right))
        assert str(left) in str(caught.value)
        assert str(right) in str(caught.value)


def test_an_output_that_does_not_fit_is_named_with_the_result() -> None:
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"\(3, 3\).*\(2, 4\)"):
            tensorplay.mm(random(2, 3), random(3, 4), out=np.empty((3, 3), np.float32))
    with pytest.raises(OperandError, match="list"):
        tensorplay.mm(random(2, 3), random(3, 4), out=[[0.0]])  # type: ignore[call-overload]  # what is refused


def test_an_output_of_another_type_follows_numpy_s_casting() -> None:
    a, b = random(3, 3), random(3, 3, seed=1)
    out = np.empty((3, 3), np.float64)
    np.testing.assert_allclose(tensorplay.mm(a, b, out=out), a @ b, rtol=1e-6)
    with pytest.raises(TypeError, match="cast"):
        tensorplay.mm(a, b, out=np.empty((3, 3), np.int32))


class TestMatmul:
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ((3,), (3,)),
            ((3,), (3, 4)),
            ((2, 3), (3,)),
            ((2, 3), (3, 4)),
            ((5, 2, 3), (3, 4)),
            ((7, 5, 2, 3), (3, 4)),
            ((5, 2, 3), (5, 3, 4)),
            ((1, 2, 3), (5, 3, 4)),
            ((5, 2, 3), (1, 3, 4)),
            ((2, 3), (5, 3, 4)),
            ((0, 2, 3), (3, 4)),
            ((5, 0, 3), (3, 4)),
            ((5, 2, 0), (0, 4)),
            ((4, 5, 2, 3), (4, 5, 3, 4)),
        ],
    )
    def test_equals_numpy_for_every_rank(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        a, b = random(*left), random(*right, seed=1)
        for _ in range(2):
            found = tensorplay.matmul(a, b)
            assert np.shape(found) == np.shape(a @ b)
            close(np.asarray(found), np.asarray(a @ b))

    @pytest.mark.parametrize(
        ("left", "right"), [((), (3,)), ((2, 3), (4, 5)), ((3,), (4,)), ((2, 2, 3), (5, 3, 4)), ((5, 2, 3), (4, 3))]
    )
    def test_names_both_shapes_when_they_do_not_fit(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        with pytest.raises(ShapeError) as caught:
            tensorplay.matmul(random(*left), random(*right))
        assert str(left) in str(caught.value)
        assert str(right) in str(caught.value)

    def test_writes_into_the_output_of_any_rank(self) -> None:
        a, b = random(5, 2, 3), random(3, 4)
        out = np.empty((5, 2, 4), np.float32)
        assert tensorplay.matmul(a, b, out=out) is out
        close(out, a @ b)


class TestBmm:
    def test_equals_numpy_for_stacks_shared_and_padded(self) -> None:
        a, b = random(3, 4, 5), random(3, 5, 6, seed=1)
        for left in (a, np.broadcast_to(a[:1], a.shape), random(3, 4, 9)[..., :5], random(3, 5, 4).swapaxes(1, 2)):
            for right in (b, np.broadcast_to(b[:1], b.shape), random(3, 6, 5).swapaxes(1, 2)):
                for _ in range(2):
                    close(tensorplay.bmm(left, right), left @ right)
        out = np.empty((3, 4, 6), np.float32)
        assert tensorplay.bmm(a, b, out=out) is out
        close(out, a @ b)

    @pytest.mark.parametrize(
        ("left", "right"), [((3, 4, 5), (2, 5, 6)), ((3, 4, 5), (3, 4, 6)), ((4, 5), (5, 6)), ((1, 4, 5), (3, 5, 6))]
    )
    def test_names_both_shapes_when_they_do_not_fit(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        with pytest.raises(ShapeError) as caught:
            tensorplay.bmm(random(*left), random(*right))
        assert str(left) in str(caught.value)
        assert str(right) in str(caught.value)


@BY_EXAMPLE
@given(data=st.data(), m=st.integers(0, 5), n=st.integers(0, 5), k=st.integers(0, 5))
def test_any_two_matrices_multiply_as_in_numpy(data: st.DataObject, m: int, n: int, k: int) -> None:
    elements = st.floats(-4, 4, width=32)
    a = data.draw(arrays.arrays(np.float32, (m, k), elements=elements))
    b = data.draw(arrays.arrays(np.float32, (k, n), elements=elements))
    flips = data.draw(st.tuples(st.booleans(), st.booleans()))
    a = np.ascontiguousarray(a.T).T if flips[0] else a
    b = np.ascontiguousarray(b.T).T if flips[1] else b
    np.testing.assert_allclose(tensorplay.mm(a, b), a @ b, rtol=1e-5, atol=1e-4)


def test_a_hit_takes_one_look_up_of_the_operands_layout(tuning: TuningContext) -> None:
    a, b, out = random(4, 5), random(5, 6), np.empty((4, 6), np.float32)
    for _ in range(5):
        tensorplay.mm(a, b, out=out)
    assert len(tuning.plans) == 1
    assert tuning.stats()["measured"] == 1
    assert tuning.stats()["replayed"] == 4
    assert len(tuning.get_results()) == 1


def test_an_output_that_begins_in_the_middle_of_an_element_is_no_winner_s_fault(tuning: TuningContext) -> None:
    a, b = random(8, 16), random(16, 8)
    tensorplay.mm(a, b, out=np.empty((8, 8), np.float32))
    for kernel in ("host_numpy_dot1", "host_numpy_dot1_swap1"):
        tuning.override(*tuning.get_results()[0][:2], kernel)
        misaligned = np.zeros(8 * 8 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(8, 8)
        for out in (misaligned, misaligned.T):
            close(tensorplay.mm(a, b, out=out), a @ b)
            close(tensorplay.addmm(np.zeros(8, np.float32), a, b, out=out), a @ b)
        with pytest.raises(ShapeError):
            tensorplay.mm(a, b[:, :4], out=misaligned)
    assert tuning.get_rejections() == []


def test_a_data_type_that_is_equal_but_another_object_is_tuned_too(tuning: TuningContext) -> None:
    a = np.array([[1, 2], [3, 4]], np.dtype("=f4", metadata={"from": "elsewhere"}))
    assert a.dtype is not np.dtype("=f4")
    for _ in range(3):
        close(tensorplay.mm(a, random(2, 2)), np.asarray(a, np.float32) @ random(2, 2))
    assert tuning.stats()["measured"] == 1


def test_an_error_of_the_first_call_does_not_speak_of_the_look_up() -> None:
    with pytest.raises(ShapeError) as caught:
        tensorplay.mm(random(2, 3), random(4, 5))
    assert not isinstance(caught.value.__context__, KeyError)
