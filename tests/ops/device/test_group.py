"""When the arrays of a group may be used at once. Pure."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.member import EMPTY, Member
from tensorplay.ops.device.group import Group, are_apart
from tensorplay.ops.device.group_arrays import members_of

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=9)
DENSE = Member(False, False, 2, 4, 4, 4, 4, 4)


@given(SPANS, st.integers(0, 9))
def test_results_are_apart_when_no_byte_of_them_is_anywhere_else(spans: list[tuple[int, int]], inputs: int) -> None:
    filled = [set(range(first, first + length)) for first, length in spans]
    shared = any(
        filled[one] & filled[other]
        for one in range(inputs, len(filled))
        for other in range(len(filled))
        if one != other
    )
    pointers, lengths = [first for first, _ in spans], [length for _, length in spans]
    assert are_apart(pointers, lengths, inputs) == (not shared)


def group(members: list[Member]) -> Group:
    return Group(members, "float32", lambda *_, **__: None, lambda _: False)


def test_addresses_are_usable_when_aligned_and_apart() -> None:
    found = group([DENSE, DENSE])
    lefts, rights, outs = (0x100, 0x100), (0x200, 0x300), (0x400, 0x420)
    assert found.is_usable((*lefts, *rights, *outs))
    assert found.is_usable((*lefts, *rights)), "results that are made anew are apart"
    assert not found.is_usable((*lefts, *rights, 0x400, 0x410)), "results on each other"
    assert not found.is_usable((*lefts, *rights, 0x400, 0x330)), "a result on an operand of another product"
    assert not found.is_usable((0x108, 0x100, *rights, *outs)), "not aligned"


def test_addresses_of_empty_products_do_not_matter() -> None:
    found = group([DENSE, EMPTY])
    assert found.is_usable((0x100, 0, 0x200, 0x201, 0x400, 0x401))
    assert found.is_usable((0x100, 0x101, 0x200, 0))


@given(
    st.tuples(*[st.integers(0, 5)] * 3),
    st.tuples(*[st.sampled_from(["dense", "padded", "turned", "both", "backwards", "strided"])] * 3),
    st.booleans(),
)
def test_members_say_how_arrays_lie_and_what_cannot_be_done_in_place_is_none(
    sizes: tuple[int, int, int], ways: tuple[str, str, str], given_out: bool
) -> None:
    m, n, k = sizes
    arrays = [_lying(shape, way) for shape, way in zip(((m, k), (k, n), (m, n)), ways, strict=True)]
    if not given_out:
        arrays.pop()
    shapes = tuple(array.shape for array in arrays)
    strides = tuple(tuple(step // 4 for step in array.strides) for array in arrays)
    found = members_of(shapes, strides, 1)
    if 0 in {m, n}:
        assert found == [EMPTY]
    elif found is None:
        assert k == 0 or {"backwards", "strided", "turned", "both"} & set(ways)
    else:
        (member,) = found
        stored = (
            (arrays[0].T if member.transpose_left else arrays[0], member.ld_left),
            (arrays[1].T if member.transpose_right else arrays[1], member.ld_right),
            *(((arrays[2], member.ld_out),) if given_out else ()),
        )
        for array, ld in stored:
            assert array.shape[1] == 1 or array.strides[1] == 4
            assert array.shape[0] == 1 or array.strides[0] == 4 * ld
            assert ld >= array.shape[1]
        assert (member.m, member.n, member.k) == sizes
        assert given_out or member.ld_out == n


def _lying(shape: tuple[int, int], way: str) -> NDArray[np.float32]:
    rows, columns = shape
    made = {
        "dense": np.zeros(shape, np.float32),
        "padded": np.zeros((rows, columns + 3), np.float32)[:, :columns],
        "turned": np.zeros((columns, rows), np.float32).T,
        "both": np.zeros((columns, rows + 2), np.float32)[:, :rows].T,
        "backwards": np.zeros(shape, np.float32)[::-1],
        "strided": np.zeros((rows, 2 * columns), np.float32)[:, ::2],
    }
    return made[way]


def test_shapes_that_do_not_fit_are_none() -> None:
    for shapes in (((2, 3), (4, 5)), ((2, 3), (3,)), ((2, 3), (3, 5), (2, 4)), ((2, 3), (3, 5), (2, 5, 1))):
        strides = tuple((1,) * len(shape) for shape in shapes)
        assert members_of(shapes, strides, 1) is None
