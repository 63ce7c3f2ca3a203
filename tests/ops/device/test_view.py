"""Views of strides look at the same elements that NumPy's views do."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.ops.device.view import DeviceView, Stored, span, stored


def seen(array: NDArray[Any]) -> DeviceView:
    steps = tuple(step // array.itemsize for step in array.strides)
    return DeviceView(0, array.shape, steps, array.dtype.name, 0, 0)


def elements(view: DeviceView, memory: NDArray[Any]) -> NDArray[Any]:
    item = memory.itemsize
    return np.lib.stride_tricks.as_strided(memory, view.shape, tuple(step * item for step in view.strides))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((3, 5)), Stored(transposed=False, ld=None)),
        (np.zeros((5, 3)).T, Stored(transposed=True, ld=None)),
        (np.zeros((3, 9))[:, 2:7], Stored(transposed=False, ld=9)),
        (np.zeros((5, 9)).T[2:5], Stored(transposed=True, ld=9)),
        (np.zeros((1, 5)), Stored(transposed=False, ld=None)),
        (np.zeros((3, 5))[:1], Stored(transposed=False, ld=None)),
        (np.zeros((3, 5))[:, :1], Stored(transposed=False, ld=5)),
        (np.zeros((3, 5))[::-1], None),
        (np.zeros((3, 5))[:, ::2], None),
        (np.broadcast_to(np.zeros(5), (3, 5)), None),
        (np.broadcast_to(np.zeros((3, 1)), (3, 5)), None),
    ],
)
def test_a_matrix_lies_by_rows_or_as_the_transposed_view_of_rows(array: NDArray[Any], expected: Stored | None) -> None:
    assert stored(*seen(array)[1:3]) == expected


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_folding_gives_the_elements_of_reshape_or_nothing(shape: list[int], data: st.DataObject) -> None:
    memory = np.arange(np.prod(shape) * 4).astype(np.float32)
    whole = memory[: np.prod(shape)].reshape(shape)
    axes = data.draw(st.permutations(range(len(shape))))
    view = whole.transpose(axes)
    count = data.draw(st.integers(0, len(shape)))
    folded = seen(view).folded(count)
    if folded is None:
        assert view.size > 1
        assert not view.flags.c_contiguous
        return
    expected = view.reshape(-1 if count else 1, *view.shape[count:])
    np.testing.assert_array_equal(elements(folded, memory), expected)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
def test_expanding_gives_the_elements_of_broadcasting(shape: list[int], data: st.DataObject) -> None:
    wanted = (
        *data.draw(st.lists(st.integers(1, 3), max_size=2)),
        *(size if size > 1 else data.draw(st.integers(1, 3)) for size in shape),
    )
    array = np.arange(np.prod(shape)).astype(np.float32).reshape(shape)
    np.testing.assert_array_equal(elements(seen(array).expanded(wanted), array), np.broadcast_to(array, wanted))


def test_transposing_exchanges_the_last_two_dimensions_only() -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(elements(seen(array).transposed, array), array.swapaxes(1, 2))


def test_the_span_reaches_from_the_first_to_the_last_element() -> None:
    assert span((3, 4), (10, 1)) == 24
    assert span((3, 0), (10, 1)) == 0
    assert span((3, 4), (0, 0)) == 1
    assert span((), ()) == 1
