"""Activations through the public functions on a real device: values, added terms, hot paths, capture."""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.backends.cublaslt.reference import activated
from tensorplay.errors import OperandError
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

Array = NDArray[Any]
# Arrays come of libraries that are not imported here, so that no checker knows their types.
tensorplay: Any = package
pytestmark = [pytest.mark.filterwarnings("ignore")]

ON = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_CANDIDATES": "heuristic", "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "5"}
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-4, "float64": 1e-8}


@pytest.fixture(params=["off", "plan", "all"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TuningContext]:
    """The process's context for one test: the feature off, activations by fixed dispatch, and activations tuned."""
    environ = {} if request.param == "off" else ON | {"TP_TUNABLEOP_FAMILIES": request.param}
    with use_context(TuningContext(environ=environ, directory=tmp_path)) as context:
        yield context
        context.close()


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def cupy_pair() -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    cupy = import_module("cupy")
    return cupy.asarray, cupy.asnumpy


def torch_pair() -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    torch = import_module("torch")
    return lambda array: torch.from_numpy(array).cuda(), lambda found: found.cpu().numpy()


@pytest.fixture(params=["torch", "cupy"])
def library(request: pytest.FixtureRequest) -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    """Return what puts a host array on the device, and what gets it back."""
    if find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return {"torch": torch_pair, "cupy": cupy_pair}[request.param]()


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
def test_linear_and_addmm_are_right(library: Any, dtype: str, activation: str) -> None:
    put, get = library
    x, weight, bias, c = (random(*shape, dtype=dtype) for shape in ((33, 40), (24, 40), (24,), (33, 24)))
    product = x.astype(np.float64) @ weight.astype(np.float64).T
    allowed = TOLERANCE[dtype]
    turned = put(np.ascontiguousarray(weight.T))
    for _ in range(3):
        for vector in (None, bias):
            found = tensorplay.linear(
                put(x), put(weight), None if vector is None else put(vector), activation=activation
            )
            assert isinstance(found, type(put(x)))
            expected = activated(product + (0 if vector is None else vector), activation)
            np.testing.assert_allclose(get(found), expected, rtol=allowed, atol=allowed)
        found = tensorplay.addmm(put(bias), put(x), turned, alpha=-0.5, activation=activation)
        np.testing.assert_allclose(get(found), activated(bias - 0.5 * product, activation), rtol=allowed, atol=allowed)
        found = tensorplay.addmm(put(c), put(x), turned, beta=2, activation=activation)
        np.testing.assert_allclose(get(found), activated(product + 2.0 * c, activation), rtol=allowed, atol=allowed)


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_bfloat16_is_right(torch: Any, activation: str) -> None:
    x, weight, bias = (
        torch.rand(shape, device="cuda").sub(0.5).to(torch.bfloat16) for shape in ((5, 33, 64), (48, 64), (48,))
    )
    exact = (x.double() @ weight.double().t() + bias.double()).cpu().numpy()
    for out in (None, torch.empty(5, 33, 48, device="cuda", dtype=torch.bfloat16)):
        for _ in range(3):
            found = tensorplay.linear(x, weight, bias, activation=activation, out=out)
            assert out is None or found is out
            np.testing.assert_allclose(
                found.double().cpu().numpy(), activated(exact, activation), rtol=0.01, atol=TOLERANCE["bfloat16"]
            )


@pytest.mark.usefixtures("context")
def test_numbers_at_the_edges_are_activated_as_everywhere(torch: Any) -> None:
    x = torch.tensor([[0.0, -0.0, 1e30, -1e30, 20.0, -20.0, 1e-30, 0.5]], device="cuda")
    identity = torch.eye(8, device="cuda")
    for activation in ("relu", "gelu"):
        found = tensorplay.linear(x, identity, activation=activation).cpu().numpy()
        with np.errstate(over="ignore"):
            expected = activated(x.double().cpu().numpy(), activation)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("context")
def test_complex_numbers_are_refused(torch: Any) -> None:
    x = torch.ones(4, 4, device="cuda", dtype=torch.complex64)
    with pytest.raises(OperandError, match="activation relu of a result of complex64"):
        tensorplay.linear(x, x, activation="relu")
    with pytest.raises(OperandError, match="allowed: none, relu, gelu"):
        tensorplay.linear(x.real.contiguous(), x.real.contiguous(), activation="silu")


@pytest.mark.parametrize("context", ["all"], indirect=True)
def test_hot_paths_are_taken_and_replay_the_same_bits(torch: Any, context: TuningContext) -> None:
    x, weight, bias = (torch.rand(shape, device="cuda") - 0.5 for shape in ((64, 32), (48, 32), (48,)))
    out, turned = torch.empty(64, 48, device="cuda"), weight.t().contiguous()
    stacks = torch.rand(3, 64, 32, device="cuda"), torch.rand(3, 32, 16, device="cuda")
    calls: tuple[Callable[[], Any], ...] = (
        lambda: tensorplay.linear(x, weight, bias, activation="gelu"),
        lambda: tensorplay.linear(x, weight, bias, activation="gelu", out=out),
        lambda: tensorplay.linear(x, weight, activation="relu"),
        lambda: tensorplay.addmm(bias, x, turned, alpha=2, activation="relu"),
        lambda: tensorplay.addmm(bias, x, turned, out=out),
        lambda: tensorplay.bmm(*stacks),
        lambda: tensorplay.bmm(*stacks, out=torch.empty(3, 64, 16, device="cuda")),
    )
    for known, call in enumerate(calls, 1):
        first = call().clone()
        measured = context.stats()["measured"]
        for _ in range(3):
            assert torch.equal(call(), first)
        assert context.stats()["measured"] == measured
        assert sum(isinstance(each, Direct) for each in context.plans.values()) == known


@pytest.mark.parametrize("context", ["plan", "all"], indirect=True)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_captured_activation_replays_the_eager_bits(torch: Any, context: TuningContext, is_known: bool) -> None:
    x, weight, bias = (torch.rand(shape, device="cuda") - 0.5 for shape in ((96, 64), (80, 64), (80,)))
    out = torch.empty(96, 80, device="cuda")
    warm = torch.rand(16, 16, device="cuda")
    tensorplay.mm(warm, warm)
    if is_known:
        tensorplay.linear(x, weight, bias, activation="gelu", out=out)
    measured = context.stats()["measured"]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensorplay.linear(x, weight, bias, activation="gelu", out=out)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    replayed = out.clone()
    expected = activated((x.double() @ weight.double().t() + bias.double()).cpu().numpy(), "gelu")
    np.testing.assert_allclose(replayed.cpu().numpy(), expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(tensorplay.linear(x, weight, bias, activation="gelu", out=out), replayed)
    assert context.stats()["measured"] == measured


@pytest.mark.parametrize("context", ["plan", "all"], indirect=True)
def test_only_all_families_tune_an_activation(torch: Any, context: TuningContext) -> None:
    x = torch.rand(32, 32, device="cuda")
    tensorplay.linear(x, x, activation="relu")
    recorded = [params for _, params, *_ in context.get_results()]
    families = next(each.value for each in context.settings() if each.name == "families")
    assert recorded == (["taT_m32_n32_k32_bias0_dev0_actrelu"] if families == "all" else [])
