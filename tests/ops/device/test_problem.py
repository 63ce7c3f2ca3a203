"""The problem of views on a device, and which views a product takes in place."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tensorplay.backends.host.layout import Layout, left_layout, out_layout, right_layout
from tensorplay.errors import OperandError
from tensorplay.gemm import signature_of
from tensorplay.ops.device.problem import alignment_of, in_vectors, is_usable, is_writable, pose, result_dtype
from tensorplay.ops.device.view import DeviceView


def seen(array: NDArray[Any], **more: Any) -> DeviceView:
    steps = tuple(step // array.itemsize for step in array.strides)
    return DeviceView(4096, array.shape, steps, array.dtype.name, 0, 0)._replace(**more)


def zeros(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    return np.zeros(shape, dtype)


def test_the_plain_signature_is_the_seed_s() -> None:
    problem = pose(seen(zeros(512, 256)), seen(zeros(256, 1024)), seen(zeros(512, 1024)), alignment=16)
    assert signature_of(problem) == ("GemmTunableOp_Float32", "taN_m512_n1024_k256_bias0_dev0")


@pytest.mark.parametrize(
    ("left", "right", "out", "more", "expected"),
    [
        (zeros(3, 5), zeros(4, 5).T, zeros(3, 4), {"bias": True}, "taT_m3_n4_k5_bias1_dev0"),
        (zeros(5, 3).T, zeros(5, 4), zeros(3, 4), {}, "taN_m3_n4_k5_bias0_dev0_tbT"),
        (zeros(3, 8)[:, :5], zeros(5, 9)[:, :4], zeros(3, 7)[:, :4], {}, "taN_m3_n4_k5_bias0_dev0_lda9_ldb8_ldc7"),
        (zeros(3, 5), zeros(5, 4), zeros(3, 4), {"alignment": 4}, "taN_m3_n4_k5_bias0_dev0_align4"),
        (zeros(3, 5), zeros(5, 4), zeros(3, 4), {"accumulate": True}, "taN_m3_n4_k5_bias0_dev0_beta1"),
        (zeros(3, 5), zeros(5, 4), zeros(3, 4), {"activation": "gelu"}, "taN_m3_n4_k5_bias0_dev0_actgelu"),
        (zeros(3, 5), zeros(5, 4), zeros(3, 4), {"workspace_mib": 8}, "taN_m3_n4_k5_bias0_dev0_ws8"),
        (zeros(2, 3, 5), zeros(2, 5, 4), zeros(2, 3, 4), {}, "taN_m3_n4_k5_bias0_dev0_batch2"),
        (zeros(1, 3, 5), zeros(1, 5, 4), zeros(1, 3, 4), {}, "taN_m3_n4_k5_bias0_dev0"),
        (
            np.broadcast_to(zeros(3, 5), (2, 3, 5)),
            zeros(2, 7, 4)[:, :5],
            zeros(2, 3, 4),
            {},
            "taN_m3_n4_k5_bias0_dev0_batch2_stridea28_strideb0",
        ),
    ],
)
def test_what_is_not_plain_is_in_the_signature(
    left: NDArray[Any], right: NDArray[Any], out: NDArray[Any], more: dict[str, Any], expected: str
) -> None:
    problem = pose(seen(left), seen(right), seen(out), **{"alignment": 16} | more)
    assert signature_of(problem).params == expected


def test_tf32_and_a_wider_result_are_named() -> None:
    plain = (seen(zeros(3, 5)), seen(zeros(5, 4)), seen(zeros(3, 4)))
    assert signature_of(pose(*plain, alignment=16, tf32=True)).op == "GemmTunableOp_Tf32"
    left, right = (view._replace(dtype="bfloat16") for view in plain[:2])
    problem = pose(left, right, plain[2], alignment=16)
    assert signature_of(problem) == ("GemmTunableOp_BFloat16", "taN_m3_n4_k5_bias0_dev0_outFloat32")


def test_of_two_types_of_fp8_the_op_names_the_right_one() -> None:
    left = seen(zeros(16, 32), dtype="float8_e5m2")
    right = seen(zeros(48, 32).T, dtype="float8_e4m3fn")
    problem = pose(left, right, seen(zeros(16, 48), dtype="bfloat16"), alignment=16)
    assert signature_of(problem) == (
        "GemmTunableOp_Float8E4M3",
        "taT_m16_n48_k32_bias0_dev0_outBFloat16_typebFloat8E5M2",
    )
    problem = pose(
        left._replace(dtype="float8_e4m3fn"), right, seen(zeros(16, 48), dtype="float8_e4m3fn"), alignment=16
    )
    assert signature_of(problem) == ("GemmTunableOp_Float8E4M3", "taT_m16_n48_k32_bias0_dev0")


def test_another_device_is_another_signature() -> None:
    problem = pose(*(seen(zeros(4, 4), device=3) for _ in range(3)), alignment=16)
    assert problem.device == "3"


@given(
    order=st.permutations(range(3)),
    sizes=st.tuples(st.integers(2, 4), st.integers(1, 4), st.integers(1, 4)),
    gaps=st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
)
def test_a_stack_in_place_is_read_where_it_lies(
    order: list[int], sizes: tuple[int, int, int], gaps: tuple[int, int, int]
) -> None:
    whole = zeros(*(sizes[axis] + gap for axis, gap in zip(order, gaps, strict=True)))
    back = [order.index(axis) for axis in range(3)]
    stack = whole.transpose(back)[: sizes[0], : sizes[1], : sizes[2]]
    view = seen(stack)
    if not is_usable(view):
        return
    other, out = zeros(sizes[0], sizes[2], 3), zeros(sizes[0], sizes[1], 3)
    layout = left_layout(pose(view, seen(other), seen(out), alignment=16))
    assert _offsets(layout) == _offsets_of(view)
    turned = seen(stack.swapaxes(1, 2))
    layout = right_layout(
        pose(seen(zeros(sizes[0], 3, sizes[2])), turned, seen(zeros(sizes[0], 3, sizes[1])), alignment=16)
    )
    assert _offsets(layout) == _offsets_of(turned)
    if is_writable(view):
        layout = out_layout(
            pose(seen(zeros(sizes[0], sizes[1], 2)), seen(zeros(sizes[0], 2, sizes[2])), view, alignment=16)
        )
        assert _offsets(layout) == _offsets_of(view)
        assert len(set(_offsets_of(view))) == math.prod(sizes)


def _offsets(layout: Layout) -> list[int]:
    rows, columns = (layout.columns, layout.rows) if layout.transposed else (layout.rows, layout.columns)
    down, along = (1, layout.ld) if layout.transposed else (layout.ld, 1)
    return [
        b * layout.stride + row * down + column * along
        for b in range(layout.batch)
        for row in range(rows)
        for column in range(columns)
    ]


def _offsets_of(view: DeviceView) -> list[int]:
    return [
        sum(place * step for place, step in zip(index, view.strides, strict=True)) for index in np.ndindex(view.shape)
    ]


class TestDtypes:
    def test_the_result_is_of_the_operands_own_type(self) -> None:
        for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
            view = seen(zeros(2, 2), dtype=name)
            assert result_dtype(view, view, None) == name
            assert result_dtype(view, view, name) == name

    def test_fp8_gives_bfloat16_unless_told_otherwise(self) -> None:
        view = seen(zeros(2, 2), dtype="float8_e4m3fn")
        assert result_dtype(view, view, None) == "bfloat16"
        assert result_dtype(view, view, "float32") == "float32"

    @pytest.mark.parametrize(
        ("left", "right", "out", "said"),
        [
            ("float32", "float64", None, "float32 and float64"),
            ("int32", "int32", None, "int32"),
            ("tf32", "tf32", None, "tf32"),
            ("float32", "float32", "float64", "out is float64.*stored as float32"),
            ("float16", "float16", "bfloat16", "stored as float16 or float32"),
        ],
    )
    def test_nothing_is_converted_in_silence(self, left: str, right: str, out: str | None, said: str) -> None:
        with pytest.raises(OperandError, match=said):
            result_dtype(seen(zeros(2, 2), dtype=left), seen(zeros(2, 2), dtype=right), out)


class TestInPlace:
    def test_an_address_inside_an_element_is_not_usable(self) -> None:
        assert is_usable(seen(zeros(2, 2), pointer=4100))
        assert not is_usable(seen(zeros(2, 2), pointer=4098))
        # Its parts are what must be aligned.
        assert is_usable(seen(zeros(2, 2), pointer=4100, dtype="complex64"))

    def test_fp8_is_read_in_whole_vectors(self) -> None:
        plain = seen(zeros(4, 32), dtype="float8_e4m3fn")
        assert is_usable(plain)
        assert is_usable(plain._replace(strides=(48, 1)))
        assert is_usable(seen(zeros(32, 4).T, dtype="float8_e4m3fn")._replace(strides=(1, 64)))
        assert not is_usable(plain._replace(strides=(40, 1)))
        assert not is_usable(plain._replace(pointer=4104))
        # One row has no step to the next.
        assert is_usable(seen(zeros(1, 32), dtype="float8_e4m3fn")._replace(strides=(7, 1)))

    def test_vectors_are_counted_in_bytes(self) -> None:
        assert in_vectors(seen(zeros(4, 8)))
        assert in_vectors(seen(zeros(4, 4)))
        assert not in_vectors(seen(zeros(4, 3)))
        assert not in_vectors(seen(zeros(4, 4), dtype="float16"))
        assert not in_vectors(seen(zeros(4, 8), pointer=4100))

    def test_an_output_is_stored_by_rows_and_no_two_elements_share_memory(self) -> None:
        assert is_writable(seen(zeros(3, 4)))
        assert is_writable(seen(zeros(3, 9)[:, 2:6]))
        assert not is_writable(seen(zeros(4, 3).T))
        assert not is_writable(seen(zeros(3, 4), is_readonly=True))
        assert not is_writable(seen(np.broadcast_to(zeros(3, 4), (2, 3, 4))))
        assert is_writable(seen(zeros(2, 3, 4)))


@pytest.mark.parametrize(("pointers", "expected"), [(0x7F00, 16), (0x7F08, 8), (0x7F0C, 4), (0x7F02, 2), (0x7F01, 1)])
def test_the_alignment_class_is_that_of_the_worst_address(pointers: int, expected: int) -> None:
    assert alignment_of(0x10000 | pointers) == expected
