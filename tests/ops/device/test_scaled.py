"""Scaled FP8 products on the fake device: types, scales, layouts, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay import cuda
from tensorplay.errors import OperandError, ShapeError
from tensorplay.gemm import signature_of
from tensorplay.runtime.context import TuningContext

ml_dtypes = pytest.importorskip("ml_dtypes")

Array = NDArray[Any]
Put = Callable[..., Any]
# Here it is a fake device's arrays, whose type no checker knows.
scaled_mm: Any = cuda.scaled_mm
pytestmark = pytest.mark.usefixtures("context")

E4M3, E5M2, BF16 = (np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16"))
ROUNDOFF = {E4M3: 2.0**-4, E5M2: 2.0**-3, BF16: 2.0**-8, np.dtype(np.float16): 2.0**-11, np.dtype(np.float32): 1e-6}


@pytest.fixture
def matrix(cupy: Put, aligned: Put) -> Callable[..., Any]:
    """Return what puts random numbers of a type on the fake device, as aligned as they are there."""

    def made(*shape: int, dtype: Any = E4M3, seed: int = 0, padding: int = 0) -> Any:
        memory = aligned((*shape[:-1], shape[-1] + padding), dtype)
        memory[...] = np.random.default_rng(seed + sum(shape)).uniform(-1, 1, memory.shape).astype(dtype)
        return cupy(memory[..., : shape[-1]])

    return made


def turned(cupy: Put, array: Any) -> Any:
    return cupy(array.host.T)


def product(a: Any, b: Any) -> Array:
    wide: Array = a.host.astype(np.float64) @ b.host.astype(np.float64)
    return wide


def close(found: Any, expected: Array, dtype: np.dtype[Any]) -> None:
    assert found.host.dtype == dtype
    values = found.host.astype(np.float64)
    np.testing.assert_allclose(values, expected, rtol=ROUNDOFF[dtype], atol=ROUNDOFF[dtype] * 0.5)


@pytest.mark.parametrize(("left", "right"), [(E4M3, E4M3), (E5M2, E4M3), (E4M3, E5M2)])
@pytest.mark.parametrize("out", ["bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2"])
def test_every_pair_of_types_has_every_result_that_the_library_stores(
    cupy: Put, matrix: Put, backend: Any, left: Any, right: Any, out: str
) -> None:
    a, b = matrix(8, 32, dtype=left), turned(cupy, matrix(16, 32, dtype=right))
    if left == right and out == "float8_e5m2":
        with pytest.raises(OperandError, match="the result is float8_e5m2; a product of float8_e4m3fn and"):
            scaled_mm(a, b, out_dtype=out)
        return
    close(scaled_mm(a, b, out_dtype=out), product(a, b), np.dtype(out))
    problem = backend.launches[-1][0]
    assert (problem.left_type.name, problem.dtype.name, problem.result_type.name) == (left.name, right.name, out)
    assert ("_typeb" in signature_of(problem).params) == (left != right)


def test_the_result_is_bfloat16_unless_an_output_or_its_type_is_given(cupy: Put, matrix: Put) -> None:
    a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
    close(scaled_mm(a, b), product(a, b), BF16)
    out = matrix(8, 16, dtype=np.float32)
    assert scaled_mm(a, b, out=out) is out
    close(out, product(a, b), np.dtype(np.float32))
    assert scaled_mm(a, b, out=out, out_dtype=np.float32) is out
    for wanted in (np.float16, np.dtype(np.float16), "float16"):
        close(scaled_mm(a, b, out_dtype=wanted), product(a, b), np.dtype(np.float16))
    with pytest.raises(OperandError, match="out is float32, out_dtype bfloat16"):
        scaled_mm(a, b, out=out, out_dtype=ml_dtypes.bfloat16)


class TestScales:
    @pytest.mark.parametrize("on_device", [(False, False), (True, False), (False, True), (True, True)])
    @pytest.mark.parametrize("with_bias", [False, True])
    def test_multiply_each_operand_before_the_bias(
        self, cupy: Put, matrix: Put, on_device: tuple[bool, bool], with_bias: bool
    ) -> None:
        a, b, bias = matrix(8, 32), turned(cupy, matrix(16, 32)), matrix(16, dtype=BF16)
        scales = [
            cupy(np.full((1,), scale, np.float32)) if device else scale
            for scale, device in zip((0.25, -3.0), on_device, strict=True)
        ]
        found = scaled_mm(a, b, scale_a=scales[0], scale_b=scales[1], bias=bias if with_bias else None)
        expected = -0.75 * product(a, b) + (bias.host.astype(np.float64) if with_bias else 0)
        close(found, expected, BF16)

    def test_tell_left_from_right(self, cupy: Put, matrix: Put, backend: Any) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        scale = cupy(np.array([2.0], np.float32))
        for further in ({"scale_a": scale}, {"scale_b": scale}, {"scale_a": scale, "scale_b": scale}):
            close(scaled_mm(a, b, **further), 2.0 ** len(further) * product(a, b), BF16)

    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    def test_are_arrays_of_one_number_of_any_rank(self, cupy: Put, matrix: Put, shape: tuple[int, ...]) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        close(scaled_mm(a, b, scale_a=cupy(np.full(shape, 3.0, np.float32))), 3 * product(a, b), BF16)

    def test_of_the_result_scale_it_before_it_is_rounded(self, cupy: Put, matrix: Put) -> None:
        a, b, bias = matrix(8, 32), turned(cupy, matrix(16, 32)), matrix(16, dtype=BF16)
        scale = cupy(np.array(8.0, np.float32))
        for given in (8.0, np.float32(8), scale):
            close(scaled_mm(a, b, scale_out=given, out_dtype="float8_e4m3fn"), 8 * product(a, b), E4M3)
        found = scaled_mm(a, b, scale_a=0.5, scale_out=scale, bias=bias, out_dtype="float8_e4m3fn")
        close(found, 8 * (0.5 * product(a, b) + bias.host.astype(np.float64)), E4M3)

    def test_are_read_in_each_call_and_resolved_once(self, cupy: Put, matrix: Put, context: TuningContext) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        for number in (1.0, 2.0, 0.5):
            close(scaled_mm(a, b, scale_a=number), number * product(a, b), BF16)
            close(scaled_mm(a, b, scale_a=cupy(np.array([number], np.float32))), number * product(a, b), BF16)
        assert len(context.plans) == 1

    @pytest.mark.parametrize(
        "shape_and_type", [((8, 1), np.float32), ((0,), np.float32), ((1,), np.float64), ((2,), np.float32)]
    )
    def test_of_rows_or_another_type_are_refused(self, cupy: Put, matrix: Put, shape_and_type: Any) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        with pytest.raises(OperandError, match=r"scale_b is .* allowed: a number, or an array of one float32"):
            scaled_mm(a, b, scale_b=cupy(np.ones(*shape_and_type)))

    def test_on_the_host_or_another_device_are_refused(self, cupy: Put, matrix: Put) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        with pytest.raises(OperandError, match="on the host"):
            scaled_mm(a, b, scale_a=np.ones(1, np.float32))
        with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
            scaled_mm(a, b, scale_a=cupy(np.ones(1, np.float32), 1))

    def test_of_a_result_that_is_not_fp8_are_refused(self, cupy: Put, matrix: Put) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        for scale in (2.0, cupy(np.ones(1, np.float32))):
            with pytest.raises(OperandError, match="scale_out is given for a result of bfloat16"):
                scaled_mm(a, b, scale_out=scale)


class TestLayouts:
    def test_padded_rows_are_read_in_place(self, cupy: Put, matrix: Put, backend: Any) -> None:
        a, b = matrix(8, 32, padding=16), turned(cupy, matrix(16, 32, padding=32))
        close(scaled_mm(a, b), product(a, b), BF16)
        assert (backend.launches[-1][0].ld_left, backend.launches[-1][0].ld_right) == (48, 64)

    def test_a_left_operand_between_vectors_is_copied(self, cupy: Put, matrix: Put, backend: Any) -> None:
        b = turned(cupy, matrix(16, 32))
        for a in (matrix(8, 32, padding=8), cupy(matrix(257).host[1:].reshape(8, 32))):
            close(scaled_mm(a, b), product(a, b), BF16)
            assert backend.launches[-1][0].ld_left is None

    @pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float8_e4m3fn"])
    def test_an_output_between_vectors_or_turned_is_written_all_the_same(
        self, cupy: Put, matrix: Put, dtype: str
    ) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        for out in (matrix(8, 16, dtype=dtype, padding=3), cupy(matrix(16, 8, dtype=dtype).host.T)):
            assert scaled_mm(a, b, out=out) is out
            close(out, product(a, b), np.dtype(dtype))

    def test_an_output_that_overlaps_an_operand_or_a_scale_gets_the_right_result(self, cupy: Put, matrix: Put) -> None:
        a, b = matrix(32, 32), turned(cupy, matrix(32, 32))
        expected = product(a, b)
        close(scaled_mm(a, b, out=a, out_dtype="float8_e4m3fn"), expected, E4M3)
        a, out = matrix(32, 32), matrix(32, 32, dtype=np.float32)
        out.host[...] = 2.0
        close(scaled_mm(a, b, scale_a=cupy(out.host[3, :1]), out=out), 2 * product(a, b), np.dtype(np.float32))

    def test_a_bias_between_vectors_is_copied(self, cupy: Put, matrix: Put) -> None:
        a, b, bias = matrix(8, 32), turned(cupy, matrix(16, 32)), cupy(matrix(17, dtype=BF16).host[1:])
        close(scaled_mm(a, b, bias=bias), product(a, b) + bias.host.astype(np.float64), BF16)

    def test_any_number_of_rows_is_multiplied_none_too(self, cupy: Put, matrix: Put) -> None:
        b = turned(cupy, matrix(16, 32))
        for m in (0, 1, 7, 33):
            a = matrix(m, 32)
            close(scaled_mm(a, b), product(a, b), BF16)

    def test_what_no_kernel_reads_is_refused_by_name(self, cupy: Put, matrix: Put) -> None:
        a, b = matrix(32, 32), turned(cupy, matrix(32, 32))
        with pytest.raises(OperandError, match=r"b \(32, 32\) is not the transposed view"):
            scaled_mm(a, matrix(32, 32))
        with pytest.raises(OperandError, match=r"a \(32, 32\) is not stored by rows"):
            scaled_mm(turned(cupy, a), b)
        for sizes in ((32, 24), (24, 32), (32, 0)):
            with pytest.raises(OperandError, match="multiples of 16"):
                scaled_mm(matrix(8, sizes[1]), turned(cupy, matrix(*sizes)))


class TestRefusals:
    def test_shapes_that_do_not_fit(self, cupy: Put, matrix: Put) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        with pytest.raises(ShapeError, match=r"scaled_mm: \(8, 32\) and \(16, 32\)"):
            scaled_mm(a, matrix(16, 32))
        with pytest.raises(ShapeError, match=r"two matrices"):
            scaled_mm(matrix(2, 8, 32), b)
        with pytest.raises(ShapeError, match=r"bias is \(8,\)"):
            scaled_mm(a, b, bias=matrix(8, dtype=BF16))
        with pytest.raises(ShapeError, match=r"out is \(8, 32\)"):
            scaled_mm(a, b, out=matrix(8, 32, dtype=BF16))

    def test_types_that_are_not_multiplied(self, cupy: Put, matrix: Put) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        half = matrix(8, 32, dtype=BF16)
        with pytest.raises(OperandError, match="operands are bfloat16 and float8_e4m3fn"):
            scaled_mm(half, b)
        with pytest.raises(OperandError, match="both operands are float8_e5m2; one of them must be float8_e4m3fn"):
            scaled_mm(matrix(8, 32, dtype=E5M2), turned(cupy, matrix(16, 32, dtype=E5M2)))
        for out_dtype in ("float64", "int8", int):
            with pytest.raises(OperandError, match="the result is"):
                scaled_mm(a, b, out_dtype=out_dtype)

    @pytest.mark.parametrize(("out", "wanted"), [("float32", BF16), ("float16", np.float16), ("float8_e4m3fn", BF16)])
    def test_a_bias_of_another_type_than_the_library_adds(self, cupy: Put, matrix: Put, out: str, wanted: Any) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        right = matrix(16, dtype=wanted)
        close(scaled_mm(a, b, bias=right, out_dtype=out), product(a, b) + right.host.astype(float), np.dtype(out))
        with pytest.raises(OperandError, match=f"what is added is float64.* {np.dtype(wanted).name} is added"):
            scaled_mm(a, b, bias=matrix(16, dtype=np.float64), out_dtype=out)

    def test_operands_on_the_host(self) -> None:
        with pytest.raises(OperandError, match="the operands are on the host"):
            scaled_mm(np.ones((16, 16), E4M3), np.ones((16, 16), E4M3))

    def test_a_device_without_fp8(self, cupy: Put, matrix: Put, backend: Any) -> None:
        a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
        backend.capability = "8.6"
        with pytest.raises(
            OperandError, match=r"a fake GPU has no FP8: its compute capability is 8\.6, FP8 begins at 8"
        ):
            scaled_mm(a, b)
        for capability in ("8.9", "9.0", "10.0", "12.1"):
            backend.capability = capability
            scaled_mm(a, b)


def test_plain_products_of_fp8_may_be_stored_as_fp8_but_are_not_added_to(cupy: Put, matrix: Put) -> None:
    import tensorplay as package

    tensorplay: Any = package
    a, b = matrix(8, 32), turned(cupy, matrix(16, 32))
    out = matrix(8, 16)
    assert tensorplay.mm(a, b, out=out) is out
    close(out, product(a, b), E4M3)
    with pytest.raises(OperandError, match="no matrix is added to a result of float8_e4m3fn"):
        tensorplay.addmm(matrix(8, 16), a, b, out=out)
    c = matrix(8, 16, dtype=BF16)
    close(tensorplay.addmm(c, a, b, beta=2), product(a, b) + 2 * c.host.astype(float), BF16)


@pytest.mark.parametrize("name", ["scale_a", "scale_b", "scale_out"])
def test_a_scale_that_no_float_can_be_is_refused(cupy: Put, matrix: Put, name: str) -> None:
    with pytest.raises(OperandError, match=f"{name} is too large a int"):
        scaled_mm(matrix(8, 32), turned(cupy, matrix(16, 32)), **{name: 10**400})


def test_a_scale_or_output_without_memory_is_refused(cupy: Put, matrix: Put) -> None:
    gone = cupy(np.ones(1, np.float32))
    gone.data.ptr = 0
    with pytest.raises(OperandError, match=r"has the shape \(1,\) and no memory"):
        scaled_mm(matrix(8, 32), turned(cupy, matrix(16, 32)), scale_a=gone)
    out = matrix(8, 16, dtype=BF16)
    out.data.ptr = 0
    with pytest.raises(OperandError, match=r"has the shape \(8, 16\) and no memory"):
        scaled_mm(matrix(8, 32), turned(cupy, matrix(16, 32)), out=out)
