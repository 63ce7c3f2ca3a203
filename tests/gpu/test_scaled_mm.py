"""Scaled FP8 products of torch's tensors on a real device: types, scales, streams, capture, hot path."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorplay as package
from tensorplay import cuda
from tensorplay.backends.cublaslt.device import device
from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

# Arrays come of a library that is not imported here, so that no checker knows their types.
tensorplay: Any = package
scaled_mm: Any = cuda.scaled_mm

E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
PAIRS = [(E4M3, E4M3), (E5M2, E4M3), (E4M3, E5M2)]
RESULTS = ["bfloat16", "float16", "float32", E4M3, E5M2]
ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 1e-5, E4M3: 2.0**-4, E5M2: 2.0**-3}
ON = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_CANDIDATES": "heuristic", "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "5"}


@pytest.fixture(params=["plan", "all"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TuningContext]:
    """The process's context for one test: FP8 by fixed dispatch, and FP8 tuned."""
    environ = ON | {"TP_TUNABLEOP_FAMILIES": request.param}
    with use_context(TuningContext(environ=environ, directory=tmp_path)) as context:
        yield context
        context.close()


pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("context", "float8")]


@pytest.fixture
def float8() -> None:
    """Skip the test on a device that has no FP8."""
    if device(0).capability < (8, 9):
        pytest.skip("this device has no FP8")


def matrix(torch: Any, rows: int, columns: int, name: str = E4M3, *, padding: int = 0) -> Any:
    memory = torch.rand(rows, columns + padding, device="cuda") * 2 - 1
    return memory.to(getattr(torch, name))[:, :columns]


def pair(torch: Any, left: str = E4M3, right: str = E4M3, *, m: int = 64, n: int = 96, k: int = 128) -> Any:
    """Return operands, and their product in float64."""
    a, b = matrix(torch, m, k, left), matrix(torch, n, k, right).t()
    return a, b, a.to(torch.float64) @ b.to(torch.float64)


def scalar(torch: Any, number: float) -> Any:
    return torch.tensor([number], device="cuda", dtype=torch.float32)


def close(found: Any, expected: Any, name: str = "bfloat16") -> None:
    """Compare with float64: rounding to the result's type, and what FP8 sums lose in tensor cores."""
    assert str(found.dtype) == f"torch.{name}"
    difference = (found.double() - expected).abs()
    allowed = 0.02 + ROUNDOFF[name] * expected.abs()
    assert bool((difference <= allowed).all()), (difference - allowed).max().item()


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("out", RESULTS)
def test_every_pair_of_types_is_right_in_every_result(torch: Any, left: str, right: str, out: str) -> None:
    a, b, product = pair(torch, left, right)
    if left == right and out == E5M2:
        with pytest.raises(OperandError, match="the result is float8_e5m2"):
            scaled_mm(a, b, out_dtype=out)
        return
    for number in (1.0, 0.5, -2.0):
        close(scaled_mm(a, b, scale_a=number, scale_b=0.25, out_dtype=out), 0.25 * number * product, out)
        found = scaled_mm(a, b, scale_a=scalar(torch, number), scale_b=0.25, out_dtype=getattr(torch, out))
        close(found, 0.25 * number * product, out)
        scales = {"scale_a": scalar(torch, number), "scale_b": scalar(torch, 0.25)}
        close(scaled_mm(a, b, **scales, out_dtype=out), 0.25 * number * product, out)
    close(scaled_mm(a, b, out_dtype=out), product, out)


@pytest.mark.parametrize("out", ["bfloat16", "float16", "float32", E4M3])
@pytest.mark.parametrize("is_on_device", [False, True])
def test_a_bias_is_added_after_the_scales(torch: Any, out: str, is_on_device: bool) -> None:
    a, b, product = pair(torch)
    name = "float16" if out == "float16" else "bfloat16"
    bias = (torch.rand(96, device="cuda") - 0.5).to(getattr(torch, name))
    scale = scalar(torch, 0.125) if is_on_device else 0.125
    for _ in range(3):
        close(scaled_mm(a, b, scale_b=scale, bias=bias, out_dtype=out), 0.125 * product + bias.double(), out)
    wrong = bias.to(torch.float64)
    with pytest.raises(OperandError, match=f"what is added is float64.* {name} is added"):
        scaled_mm(a, b, bias=wrong, out_dtype=out)


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_result_of_fp8_is_scaled_before_it_is_rounded(torch: Any, with_bias: bool) -> None:
    a, b, product = pair(torch)
    bias: Any = (torch.rand(96, device="cuda") - 0.5).bfloat16() if with_bias else None
    expected = 8 * (0.0625 * product + (bias.double() if with_bias else 0))
    for scale in (8.0, 8, scalar(torch, 8.0), scalar(torch, 8.0).reshape(())):
        for _ in range(2):
            close(scaled_mm(a, b, scale_a=0.0625, scale_out=scale, bias=bias, out_dtype=E4M3), expected, E4M3)
    with pytest.raises(OperandError, match="only a result of FP8 is scaled"):
        scaled_mm(a, b, scale_out=2.0)


def test_results_are_those_of_torch_s_own(torch: Any) -> None:
    a, b, _ = pair(torch, m=32, n=64, k=256)
    scales = {"scale_a": scalar(torch, 0.5), "scale_b": scalar(torch, 3.0)}
    expected = torch._scaled_mm(a, b, **scales, out_dtype=torch.float32)
    torch.testing.assert_close(scaled_mm(a, b, **scales, out_dtype="float32"), expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("m", [0, 1, 7, 16, 33, 500])
def test_any_number_of_rows_is_right(torch: Any, m: int) -> None:
    a, b, product = pair(torch, m=m, n=32, k=64)
    for _ in range(2):
        close(scaled_mm(a, b), product)


def test_padded_and_misaligned_operands_and_outputs_are_right(torch: Any) -> None:
    left = [matrix(torch, 32, 64), matrix(torch, 32, 64, padding=16), matrix(torch, 32, 64, padding=3)]
    right = [matrix(torch, 48, 64).t(), matrix(torch, 48, 64, padding=32).t()]
    for a, b in itertools.product(left, right):
        expected = a.to(torch.float64) @ b.to(torch.float64)
        close(scaled_mm(a, b), expected)
        for name in ("bfloat16", "float32", E4M3):
            for memory in (torch.empty(32, 48), torch.empty(32, 53), torch.empty(48, 32).t()):
                out = memory.to(getattr(torch, name)).cuda()[:, :48]
                assert scaled_mm(a, b, out=out) is out
                close(out, expected, name)


def test_scales_are_read_when_the_product_runs(torch: Any) -> None:
    a, b, product = pair(torch)
    scale = scalar(torch, 1.0)
    scaled_mm(a, b, scale_a=scale)
    torch.cuda.synchronize()
    for number in (2.0, -0.5):
        torch.cuda._sleep(20_000_000)
        scale.fill_(number)
        found = scaled_mm(a, b, scale_a=scale)
        # Had the call waited for the scale, the stream would be empty now.
        assert not torch.cuda.current_stream().query()
        close(found, number * product)


def test_a_captured_product_reads_its_scales_in_each_replay(torch: Any, context: TuningContext) -> None:
    a, b, product = pair(torch)
    bias = (torch.rand(96, device="cuda") - 0.5).bfloat16()
    scale, out = scalar(torch, 1.0), torch.empty(64, 96, device="cuda", dtype=torch.bfloat16)
    narrow = torch.empty(64, 96, device="cuda").to(torch.float8_e4m3fn)
    warm = matrix(torch, 16, 16)
    scaled_mm(warm, warm.t())
    scaled_mm(a, b, scale_a=scale, out=out)
    measured = context.stats()["measured"]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scaled_mm(a, b, scale_a=scale, out=out)
        # Met here first; a number that must be on the device is written there by the graph.
        scaled_mm(a, b, scale_a=0.125, scale_out=2.0, bias=bias, out=narrow)
    for number in (2.0, -0.25):
        scale.fill_(number)
        out.zero_()
        narrow.copy_(torch.zeros_like(out))
        graph.replay()
        torch.cuda.synchronize()
        close(out, number * product)
        close(narrow, 2 * (0.125 * product + bias.double()), E4M3)
        replayed = out.clone()
        assert torch.equal(scaled_mm(a, b, scale_a=scale, out=out), replayed)
    assert context.stats()["measured"] == measured


@pytest.mark.parametrize("out", ["bfloat16", E4M3])
def test_the_hot_path_is_taken_and_replays_the_same_bits(torch: Any, context: TuningContext, out: str) -> None:
    a, b, product = pair(torch)
    scale = scalar(torch, 0.5)
    first = scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=out)
    close(first, 0.25 * product, out)
    known = [each for each in context.plans.values() if isinstance(each, Direct)]
    assert len(known) == 1
    for _ in range(3):
        again = scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=out)
        assert torch.equal(again.view(torch.uint8), first.view(torch.uint8))
    close(scaled_mm(a, b, scale_a=scalar(torch, 1.0), scale_b=scale, out_dtype=out), 0.5 * product, out)
    assert [each for each in context.plans.values() if isinstance(each, Direct)] == known


def test_only_all_families_tune_fp8(torch: Any, context: TuningContext) -> None:
    a, b, _ = pair(torch, E5M2, E4M3, m=32, n=32, k=32)
    scaled_mm(a, b)
    families = next(each.value for each in context.settings() if each.name == "families")
    line = ("GemmTunableOp_Float8E4M3", "taT_m32_n32_k32_bias0_dev0_outBFloat16_typebFloat8E5M2")
    assert [tuple(entry[:2]) for entry in context.get_results()] == ([line] if families == "all" else [])


def test_plain_products_are_stored_as_fp8_too(torch: Any) -> None:
    a, b, product = pair(torch)
    out = torch.empty(64, 96, device="cuda").to(torch.float8_e4m3fn)
    for _ in range(3):
        assert tensorplay.mm(a, b, out=out) is out
        close(out, product, E4M3)


def test_an_activation_of_fp8_is_applied_or_said_to_be_none(torch: Any) -> None:
    a, b, product = pair(torch)
    try:
        found = tensorplay.linear(a, b.t(), activation="relu")
    except OperandError as error:
        assert "cuBLASLt has no kernel for it" in str(error)  # noqa: PT017 - a device may have one or not
    else:
        close(found, product.clamp(min=0))


def test_what_does_not_fit_is_named(torch: Any) -> None:
    a, b, _ = pair(torch)
    with pytest.raises(OperandError, match="is not the transposed view"):
        scaled_mm(a, b.contiguous())
    with pytest.raises(OperandError, match="multiples of 16"):
        scaled_mm(matrix(torch, 32, 24), matrix(torch, 32, 24).t())
    with pytest.raises(OperandError, match="both operands are float8_e5m2"):
        scaled_mm(matrix(torch, 32, 32, E5M2), matrix(torch, 32, 32, E5M2).t())
    with pytest.raises(OperandError, match="rows, columns or blocks are not supported"):
        scaled_mm(a, b, scale_a=torch.ones(64, 1, device="cuda"))
    with pytest.raises(OperandError, match="on the host"):
        scaled_mm(a, b, scale_a=torch.ones(1))
    with pytest.raises(ShapeError, match=r"\(64, 128\) and \(96, 128\)"):
        scaled_mm(a, b.t())


def test_scales_that_lie_anywhere_are_right(torch: Any) -> None:
    a, b, product = pair(torch, m=32, n=32, k=64)
    numbers = torch.tensor([3.0, 0.5, -2.0], device="cuda")
    for _ in range(2):
        found = scaled_mm(a, b, scale_a=numbers[1], scale_b=numbers[2:], out_dtype=torch.float32)
        close(found, -product, "float32")
