"""Arrays of every library that is installed, on a real device: read in place, ordered, and given back as their own."""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.cuda import DeviceArray, asarray
from tensorplay.errors import OperandError
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

Array = NDArray[Any]
# The annotations promise NumPy; here it is whatever a device's arrays are.
tensorplay: Any = package
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("context"),
]

ON = {"TP_TUNABLEOP_ENABLED": "1", "TP_TUNABLEOP_CANDIDATES": "heuristic", "TP_TUNABLEOP_MAX_TUNING_SAMPLES": "5"}


@pytest.fixture(params=["off", "on"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TuningContext]:
    with use_context(TuningContext(environ=ON if request.param == "on" else {}, directory=tmp_path)) as context:
        yield context
        context.close()


def torch_pair() -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    torch = import_module("torch")
    return lambda array: torch.from_numpy(array).cuda(), lambda found: found.cpu().numpy()


def cupy_pair() -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    cupy = import_module("cupy")
    return cupy.asarray, cupy.asnumpy


def jax_pair() -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    return lambda array: jax.device_put(array, jax.devices("gpu")[0]), np.asarray


def numba_pair() -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    cuda = import_module("numba.cuda")
    return cuda.to_device, lambda found: found.copy_to_host()


def own_pair() -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    return asarray, lambda found: found.numpy()


LIBRARIES = {"torch": torch_pair, "cupy": cupy_pair, "jax": jax_pair, "numba": numba_pair, "own": own_pair}


@pytest.fixture(params=list(LIBRARIES))
def library(request: pytest.FixtureRequest) -> tuple[Callable[[Array], Any], Callable[[Any], Array]]:
    name = request.param
    if name != "own" and find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    try:
        return LIBRARIES[name]()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"{name} has no device: {error}")


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_a_product_is_of_the_operands_library_and_right(library: Any, dtype: str) -> None:
    put, get = library
    a, b = random(33, 20, dtype=dtype), random(20, 17, dtype=dtype, seed=1)
    tolerance = 1e-2 if dtype == "float16" else 1e-4
    for _ in range(3):
        found = tensorplay.mm(put(a), put(b))
        assert isinstance(found, type(put(a)))
        np.testing.assert_allclose(get(found), a @ b, rtol=tolerance, atol=tolerance)


def test_addmm_and_linear_are_right(library: Any) -> None:
    put, get = library
    a, b, bias, c = random(12, 20), random(20, 8), random(8), random(12, 8, seed=1)
    for _ in range(2):
        found = tensorplay.addmm(put(c), put(a), put(b), alpha=0.5, beta=2)
        np.testing.assert_allclose(get(found), 2 * c + 0.5 * (a @ b), rtol=1e-4, atol=1e-4)
        found = tensorplay.addmm(put(random(1, 8)), put(a), put(b), beta=2)
        np.testing.assert_allclose(get(found), 2 * random(1, 8) + a @ b, rtol=1e-4, atol=1e-4)
        found = tensorplay.linear(put(a), put(np.ascontiguousarray(b.T)), put(bias))
        np.testing.assert_allclose(get(found), a @ b + bias, rtol=1e-4, atol=1e-4)


def test_an_output_is_written_in_place_unless_the_library_forbids_it(library: Any) -> None:
    put, get = library
    a, out = random(8, 8), put(np.zeros((8, 8), np.float32))
    if type(out).__module__.startswith("jax"):
        with pytest.raises(OperandError, match="cannot be written to"):
            tensorplay.mm(put(a), put(a), out=out)
        return
    assert tensorplay.mm(put(a), put(a), out=out) is out
    np.testing.assert_allclose(get(out), a @ a, rtol=1e-4, atol=1e-4)


def test_results_are_ordered_with_the_library_s_own_work(library: Any) -> None:
    put, get = library
    a = random(1024, 1024)
    left = put(a)
    for _ in range(10):
        product = tensorplay.mm(left, left)
        np.testing.assert_allclose(get(product), a @ a, rtol=1e-2, atol=1e-2)
        del product


def test_the_host_does_not_mix_with_a_device(library: Any) -> None:
    put, _ = library
    with pytest.raises(OperandError, match="on the host"):
        tensorplay.mm(put(random(3, 3)), random(3, 3))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_our_arrays_hold_the_types_that_numpy_lacks(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = random(16, 32).astype(getattr(ml_dtypes, name))
    np.testing.assert_array_equal(asarray(array).numpy(), array)


def test_our_arrays_multiply_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = random(16, 32).astype(ml_dtypes.bfloat16)
    found = tensorplay.linear(asarray(a), asarray(a))
    wide = a.astype(np.float32)
    np.testing.assert_allclose(found.numpy().astype(np.float32), wide @ wide.T, rtol=2e-2, atol=5e-2)


def test_torch_takes_our_arrays_without_copying() -> None:
    torch = pytest.importorskip("torch")
    put = asarray(random(4, 5))
    tensor = torch.from_dlpack(put)
    assert tensor.data_ptr() == put.pointer
    np.testing.assert_array_equal(tensor.cpu().numpy(), random(4, 5))
    assert type(tensorplay.mm(put, asarray(random(5, 3)))) is DeviceArray


def test_the_memory_of_our_arrays_is_given_back() -> None:
    from tensorplay.backends.cublaslt.memory import live_bytes

    tensorplay.mm(asarray(random(64, 64)), asarray(random(64, 64)))
    before = live_bytes()
    for _ in range(20):
        tensorplay.mm(asarray(random(512, 512)), asarray(random(512, 512)))
    assert live_bytes() <= before + (64 << 20)
