from typing import Any

import numpy as np
import pytest

from tensorplay.errors import OperandError
from tensorplay.ops.device.byte_strides import dense_strides, element_strides
from tensorplay.ops.device.cuda_array_interface import LEGACY_STREAM, address_of, view_of_interface


def interface(**more: Any) -> dict[str, Any]:
    return {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "strides": None, "version": 3} | more


def test_the_interface_s_array_is_seen_with_steps_in_elements() -> None:
    view = view_of_interface(interface(strides=(24, 4), stream=7), 1)
    assert view[:6] == (4096, (2, 3), (6, 1), "float32", 1, 7)
    assert not view.is_readonly
    assert view_of_interface(interface(data=(4096, True)), 0).is_readonly


def test_what_is_left_out_is_dense_and_on_the_default_stream() -> None:
    for given in (interface(), interface(version=2), interface(stream=None)):
        view = view_of_interface(given, 0)
        assert view.strides == (3, 1)
        assert view.stream == LEGACY_STREAM


@pytest.mark.parametrize("typestr", ["<V2", "|V2", "|V1", "<i4", "|u1", ">f4"])
def test_a_type_that_it_cannot_name_is_refused(typestr: str) -> None:
    with pytest.raises(OperandError, match="bfloat16 and FP8 come by __dlpack__"):
        view_of_interface(interface(typestr=typestr), 0)


def test_a_type_that_the_array_names_itself_is_taken() -> None:
    view = view_of_interface(interface(typestr="<V2", strides=(12, 2)), 0, "bfloat16")
    assert (view.dtype, view.strides) == ("bfloat16", (6, 1))


@pytest.mark.parametrize(
    ("more", "said"),
    [({"version": 1}, "version 1"), ({"mask": object()}, "mask"), ({"stream": 0}, "stream 0")],
)
def test_what_it_forbids_or_we_do_not_know_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(OperandError, match=said):
        view_of_interface(interface(**more), 0)


NONSENSE: dict[str, tuple[Any, ...]] = {
    "data": (
        *(None, 5, (), (4096,), (4096, False, 0), ("x", False), (1.5, False)),
        *((-5, False), (2**64, False), (10**9999, False)),
    ),
    "stream": ("x", -7, 1.5, 2**64, []),
    "strides": ("ab", ("a", "b"), (4,), (24, 4, 4), (24.0, 4.0), (2**63, 4), 7),
    "shape": (None, 5, (-2, 3), (2.0, 3.0), "ab", (2**63, 3)),
    "typestr": (None, "", "?", "<f", 4, []),
    "version": ("3", None, [], 4, 3.0, 10**9999, "3" * 10**6),
}


@pytest.mark.parametrize("key", NONSENSE)
def test_what_is_no_such_thing_is_refused_in_words(key: str) -> None:
    for value in NONSENSE[key]:
        given = interface(**{key: value})
        with pytest.raises(
            OperandError, match=f"__cuda_array_interface__ .*{key.removesuffix('str')}.*allowed"
        ) as told:
            view_of_interface(given, 0)
        assert len(str(told.value)) < 300


@pytest.mark.parametrize("key", ["shape", "typestr", "data", "version"])
def test_what_it_must_say_and_does_not_is_named(key: str) -> None:
    given = interface()
    del given[key]
    with pytest.raises(OperandError, match=f"has no '{key}'"):
        view_of_interface(given, 0)


def test_numbers_of_numpy_lists_and_no_address_are_taken() -> None:
    view = view_of_interface(
        interface(shape=[np.int64(2), np.int64(3)], strides=[np.int64(12), 4], data=[np.uint64(4096), False]), 0
    )
    assert view[:3] == (4096, (2, 3), (3, 1))
    assert address_of(interface(data=(None, False))) == 0


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (1, 1)])
def test_dense_steps_are_numpy_s(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float64)
    assert dense_strides(shape) == element_strides(array.strides, 8)


def test_a_step_that_ends_inside_an_element_makes_the_array_one_to_copy() -> None:
    assert element_strides((12, 6), 4) == (-1, -1)
    assert element_strides((-8, 4), 4) == (-2, 1)
