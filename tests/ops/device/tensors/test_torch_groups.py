"""Groups of tensors: found by addresses or by sizes, and left to the loop where anything is unusual."""

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.member import Member
from tensorplay.cuda import grouped_mm
from tensorplay.errors import LaunchError, OperandError
from tensorplay.ops.device import groups as groups_module
from tensorplay.ops.device import torch_groups as torch_groups_module
from tensorplay.ops.device.kinds import kind_of
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
Put = Callable[[Array], Any]
Tensors = list[Any]


class FakeGuards:
    """As the compiler's check: exactly these types, and sizes where they are given; no tensor in two places."""

    made = 0

    def __init__(self, *tensors: Any, dynamic_dims_sizes: Any, dynamic_dims_strides: Any) -> None:
        FakeGuards.made += 1
        self.wanted = [self.described(tensor) for tensor in tensors]
        self.sizes = list(zip(dynamic_dims_sizes, dynamic_dims_strides, strict=True))

    @staticmethod
    def described(tensor: Any) -> tuple[Any, ...]:
        return type(tensor), tensor.dtype, tensor.get_device(), tensor.requires_grad, tensor.ndim, tensor.conjugated

    def check(self, *tensors: Any) -> bool:
        if len(tensors) != len(self.wanted):
            raise TypeError("wrong length")
        if len({id(tensor) for tensor in tensors}) < len(tensors):
            return False
        for tensor, wanted, (sizes, strides) in zip(tensors, self.wanted, self.sizes, strict=True):
            given = zip((*sizes, *strides), (*tensor.shape, *tensor.stride()), strict=True)
            if self.described(tensor) != wanted or any(size not in {None, found} for size, found in given):
                return False
        return True


@pytest.fixture(params=["compiled", "compared"])
def guards(request: pytest.FixtureRequest, torch: Any) -> str:
    """Let torch have its compiler's check, or not."""
    if request.param == "compiled":
        torch._C._dynamo = SimpleNamespace(guards=SimpleNamespace(TensorGuards=FakeGuards))
    return str(request.param)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, backend: Any, context: TuningContext, torch: Any) -> Iterator[Any]:
    """Return what was run at once: its `sizes` and `streams`, the `types` made ready; `error` is raised."""
    record = SimpleNamespace(sizes=[], streams=[], types=[], error=None)

    def made(members: tuple[Member, ...], dtype: str, *_: Any) -> Any:
        def run(*addresses: Sequence[int], stream: int) -> None:
            if record.error is not None:
                raise record.error
            record.sizes.append([member[2:5] for member in members])
            record.streams.append(stream)
            tensors = {tensor.data_ptr(): tensor.host for tensor in record.tensors}
            for member, left, right, out in zip(members, *addresses, strict=True):
                tensors[out][: member.m] = tensors[left][: member.m] @ tensors[right]

        record.types.append(dtype)
        return SimpleNamespace(run=run)

    plain_empty = torch.Tensor.new_empty

    def new_empty(tensor: Any, shape: Any, dtype: Any = None) -> Any:
        record.tensors.append(plain_empty(tensor, shape, dtype))
        return record.tensors[-1]

    record.tensors = []
    monkeypatch.setattr(torch.Tensor, "new_empty", new_empty)
    monkeypatch.setattr(backend, "name", "cublaslt")
    monkeypatch.setattr(groups_module, "grouped_call", made)
    torch_groups_module.torch_groups.cache_clear()
    yield record
    torch_groups_module.torch_groups.cache_clear()


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def tensors(put: Put, rows: Sequence[int], dtype: Any = np.float32) -> tuple[Tensors, Tensors, Tensors]:
    """Return operands and outputs of products of so many rows each."""
    left = [put(random(m, 8, dtype=dtype, seed=place)) for place, m in enumerate(rows)]
    right = [put(random(8, 4, dtype=dtype, seed=place)) for place, _ in enumerate(rows)]
    return left, right, [put(np.zeros((m, 4), dtype)) for m in rows]


def checked(left: Tensors, right: Tensors, out: Tensors | None) -> Tensors:
    """Multiply and compare."""
    found = grouped_mm(left, right, out=out)
    for a, b, each in zip(left, right, found, strict=True):
        np.testing.assert_allclose(each.host, a.host @ b.host, rtol=1e-4, atol=1e-5)
        each.host[...] = np.nan
    assert out is None or all(one is other for one, other in zip(found, out, strict=True))
    return found


def test_tensors_are_found_by_addresses_when_they_come_again(put: Put, runs: Any, guards: str, backend: Any) -> None:
    left, right, out = tensors(put, (3, 5, 3, 4, 1))
    for given in (out, None):
        for _ in range(4):
            checked(left, right, given)
    assert runs.sizes == [[(3, 4, 8), (5, 4, 8), (3, 4, 8), (4, 4, 8), (1, 4, 8)]] * 8
    assert runs.types == ["float32"] * 2
    assert backend.launches == []
    assert len(torch_groups_module.torch_groups(kind_of(left[0]))._known) == 2


def test_other_tensors_at_known_addresses_are_not_taken_for_the_same(put: Put, runs: Any, guards: str) -> None:
    left, right, out = tensors(put, (4, 4, 4, 4))
    for _ in range(3):
        checked(left, right, out)
    turned = [type(tensor)(tensor.host[:2]) for tensor in left]
    smaller = [type(tensor)(tensor.host[:2]) for tensor in out]
    checked(turned, right, smaller)
    assert runs.sizes[-1] == [(2, 4, 8)] * 4


def test_sizes_that_change_are_made_ready_each_once(put: Put, runs: Any, guards: str) -> None:
    for rows in ((1, 2, 3, 4), (4, 3, 2, 1), (1, 2, 3, 4), (0, 3, 2, 1, 7)):
        checked(*tensors(put, rows))
    assert len(runs.types) == 3
    assert runs.sizes[-1] == [(3, 4, 8), (2, 4, 8), (1, 4, 8), (7, 4, 8)]


def test_a_tensor_may_be_the_left_one_of_every_product(put: Put, runs: Any, guards: str) -> None:
    left, right, out = tensors(put, (3,) * 6)
    for _ in range(3):
        checked(left[:1] * 6, right, out)
    # The same addresses, but not the same tensors.
    again = [type(tensor)(tensor.host) for tensor in left[:1] * 6]
    checked(again, right, out)
    checked([left[0], left[1], *left[:1] * 4], right, out)
    assert len(runs.sizes) == 5
    assert len(runs.types) == 1
    for _ in range(2):
        checked(left[:1] * 6, right, None)
    shorter = type(left[0])(left[0].host[:2])
    checked([left[0], shorter, *left[:1] * 4], right, None)
    assert [size[0] for size in runs.sizes[-1]] == [3, 2, 3, 3, 3, 3]


def test_the_stream_is_that_of_each_call(put: Put, runs: Any, guards: str, torch: Any) -> None:
    left, right, out = tensors(put, (3,) * 4)
    for stream in (0x60, 0x60, 0x70, 0x80):
        torch.stream = stream
        checked(left, right, out)
    assert runs.streams == [0x60, 0x60, 0x70, 0x80]


def test_tf32_is_asked_for_each_time(put: Put, runs: Any, guards: str, torch: Any) -> None:
    left, right, out = tensors(put, (3,) * 4)
    for precision in ("none", "none", "tf32", "tf32", "tf32", "none"):
        torch.precision = precision
        checked(left, right, out)
    assert runs.types == ["float32", "tf32"]


def test_the_workspace_is_that_of_each_call(put: Put, runs: Any, guards: str, context: TuningContext) -> None:
    left, right, out = tensors(put, (3,) * 4)
    for _ in range(3):
        checked(left, right, out)
    with context.configure(workspace_mib=1):
        checked(left, right, out)
    assert len(runs.types) == 2


def test_tensors_that_require_a_gradient_are_taken_where_none_is_recorded(
    put: Put, runs: Any, guards: str, torch: Any
) -> None:
    left, right, out = tensors(put, (3,) * 4)
    weights = [torch.nn.Parameter(tensor.host) for tensor in right]
    with torch.no_grad():
        for _ in range(3):
            checked(left, weights, out)
    assert len(runs.sizes) == 3
    with pytest.raises(OperandError, match="requires grad"):
        grouped_mm(left, weights, out=out)
    with torch.no_grad():
        checked(left, weights, out)
    assert len(runs.sizes) == 4


def test_results_on_operands_are_done_in_order(put: Put, runs: Any, guards: str) -> None:
    left, right, out = tensors(put, (3,) * 4)
    chained = [put(random(4, 4)) for _ in range(3)]
    grouped_mm([left[0], *out[:3]], [right[0], *chained], out=out)
    expected = left[0].host @ right[0].host
    for each in chained:
        expected = expected @ each.host
    np.testing.assert_allclose(out[3].host, expected, rtol=1e-4, atol=1e-5)
    assert runs.sizes == []


@pytest.mark.parametrize("what", ["conjugate", "another type", "another device", "vector", "integers", "no tensor"])
def test_what_is_unusual_is_left_to_the_loop(put: Put, runs: Any, guards: str, backend: Any, what: str) -> None:
    left, right, out = tensors(put, (3,) * 4, np.complex64 if what == "conjugate" else np.float32)
    for _ in range(2):
        checked(left, right, out)
    before = len(runs.sizes)
    odd = {
        "conjugate": right[1].conj,
        "another type": lambda: put(random(8, 4, dtype=np.float64)),
        "another device": lambda: type(right[1])(right[1].host, 1),
        "vector": lambda: put(random(8)),
        "integers": lambda: put(np.zeros((8, 4), np.int32)),
        "no tensor": lambda: right[1].host,
    }[what]()
    right[1] = odd
    if what == "conjugate":
        found = grouped_mm(left, right)
        np.testing.assert_allclose(found[1].host, left[1].host @ odd.host.conj(), rtol=1e-4, atol=1e-5)
    else:
        with pytest.raises((OperandError, ValueError)):
            grouped_mm(left, right, out=out)
    assert len(runs.sizes) == before


def test_a_group_that_was_captured_is_left_to_the_loop_ever_after(
    put: Put, runs: Any, guards: str, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right, out = tensors(put, (3,) * 4)
    capturing = False
    monkeypatch.setattr(backend, "is_capturing", lambda *_, **__: capturing)
    for _ in range(3):
        checked(left, right, out)
    capturing = True
    checked(left, right, out)
    capturing = False
    checked(left, right, out)
    checked(*tensors(put, (3,) * 4))
    assert len(runs.sizes) == 3


def test_a_group_that_is_refused_is_left_to_the_loop(
    put: Put, runs: Any, guards: str, caplog: pytest.LogCaptureFixture
) -> None:
    left, right, out = tensors(put, (3,) * 4)
    checked(left, right, out)
    runs.error = LaunchError("no")
    for given in (out, out, None):
        checked(left, right, given)
    assert len(runs.sizes) == 1
    assert len(caplog.records) == 2, "once for each list of sizes"


def test_tensors_on_the_host_are_multiplied_there(torch: Any, runs: Any, guards: str) -> None:
    left, right = ([torch.Tensor(random(4, 4), -1) for _ in range(5)] for _ in range(2))
    for found, a, b in zip(grouped_mm(left, right), left, right, strict=True):
        assert type(found) is torch.Tensor
        np.testing.assert_allclose(found.host, a.host @ b.host, rtol=1e-5)
    assert runs.types == []


def test_what_is_known_is_bounded(put: Put, runs: Any, guards: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_groups_module, "_MOST_KNOWN", 3)
    monkeypatch.setattr(torch_groups_module, "_MOST_SEEN", 5)
    monkeypatch.setattr(torch_groups_module, "_MOST_PLAIN", 2)
    kept = [tensors(put, (3,) * count) for count in (4, 5, 6, 7, 8, 9, 10, 11)]
    for _ in range(3):
        for each in kept:
            checked(*each)
            checked(*each)
    found = torch_groups_module.torch_groups(kind_of(kept[0][0][0]))
    assert len(found._known) <= 3
    assert len(found._seen) <= 5
    assert len(found._plain) <= 2
