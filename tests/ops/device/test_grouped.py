"""`grouped_mm`: what goes at once, and what one by one; on a fake device, by a fake call of the library."""

import ctypes
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.backends.cublaslt.grouped_limits import LEAST_PRODUCTS, MOST_MULTIPLICATIONS, is_worthwhile
from tensorplay.backends.cublaslt.member import Member
from tensorplay.cuda import grouped_mm
from tensorplay.errors import LaunchError
from tensorplay.ops.device import groups as groups_module
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import get_tuning_context

Array = NDArray[Any]
Put = Callable[..., Any]
STREAM = 0x50


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def at(pointer: int, rows: int, columns: int, ld: int, dtype: Any) -> Array:
    item = np.dtype(dtype).itemsize
    size = ((rows - 1) * ld + columns) * item
    memory = np.frombuffer((ctypes.c_char * size).from_address(pointer), dtype)
    return np.lib.stride_tricks.as_strided(memory, (rows, columns), (ld * item, item))


class FakeCall:
    """As `GroupedCall`: it multiplies what lies at the addresses that it is given."""

    def __init__(self, members: tuple[Member, ...], dtype: str, record: Any) -> None:
        self.members, self.dtype, self.record = members, {"tf32": "float32"}.get(dtype, dtype), record

    def run(self, lefts: Sequence[int], rights: Sequence[int], outs: Sequence[int], *, stream: int) -> None:
        if self.record.error is not None:
            raise self.record.error
        self.record.runs.append((len(self.members), stream))
        for each, left, right, out in zip(self.members, lefts, rights, outs, strict=True):
            a = (each.k, each.m) if each.transpose_left else (each.m, each.k)
            b = (each.n, each.k) if each.transpose_right else (each.k, each.n)
            first, second = at(left, *a, each.ld_left, self.dtype), at(right, *b, each.ld_right, self.dtype)
            product = (first.T if each.transpose_left else first) @ (second.T if each.transpose_right else second)
            at(out, each.m, each.n, each.ld_out, self.dtype)[...] = product


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, backend: Any, context: TuningContext) -> Any:
    """Return what the fake calls did: `runs`, each with its number of products and its stream; `error` is raised."""
    record = SimpleNamespace(runs=[], error=None, made=[])

    def made(members: tuple[Member, ...], dtype: str, ordinal: int, workspace_bytes: int) -> FakeCall | None:
        record.made.append((dtype, ordinal, workspace_bytes))
        return FakeCall(members, dtype, record) if is_worthwhile(dtype, members) else None

    monkeypatch.setattr(backend, "name", "cublaslt")
    monkeypatch.setattr(groups_module, "grouped_call", made)
    groups_module.groups.cache_clear()
    yield record
    groups_module.groups.cache_clear()


def pairs(put: Put, count: int, dtype: Any = np.float32) -> tuple[list[Any], list[Any], list[Array]]:
    """Return operands of products of different sizes, and what comes out."""
    left = [random(3 + number % 3, 8, dtype=dtype, seed=number) for number in range(count)]
    right = [random(8, 4, dtype=dtype, seed=number) for number in range(count)]
    return [put(a) for a in left], [put(b) for b in right], [a @ b for a, b in zip(left, right, strict=True)]


@pytest.fixture
def put(cupy: Put, aligned: Callable[..., Array]) -> Put:
    """Return what puts an array on the fake device, as aligned as an allocator does."""

    def moved(host: Array) -> Any:
        made = aligned(host.shape, host.dtype)
        made[...] = host
        return cupy(made)

    return moved


def close(found: list[Any], expected: list[Array]) -> None:
    for each, exact in zip(found, expected, strict=True):
        np.testing.assert_allclose(each.host, exact, rtol=1e-4, atol=1e-5)


class TestAtOnce:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
    @pytest.mark.parametrize("count", [LEAST_PRODUCTS, 17])
    def test_many_small_products_are_one_call(
        self, put: Put, calls: Any, backend: Any, context: TuningContext, dtype: Any, count: int
    ) -> None:
        left, right, expected = pairs(put, count, dtype)
        outs = [put(np.zeros_like(each)) for each in expected]
        tolerance = 1e-2 if dtype is np.float16 else 1e-5
        for given in (None, outs, outs):
            found = grouped_mm(left, right, out=given)
            for each, exact in zip(found, expected, strict=True):
                np.testing.assert_allclose(each.host, exact, atol=tolerance)
            assert given is None or all(one is other for one, other in zip(found, given, strict=True))
        assert calls.runs == [(count, STREAM)] * 3
        assert backend.launches == []
        assert context.stats()["first_choice"] == 3 * count, "each product is counted"
        assert len(calls.made) == 2, "what lies alike is made ready once"

    def test_transposed_and_padded_matrices_are_used_in_place(self, put: Put, calls: Any, cupy: Put) -> None:
        left = [cupy(put(random(8, 4)).host.T) for _ in range(4)]
        right = [cupy(put(random(8, 12)).host[:, :7]) for _ in range(4)]
        outs = [cupy(put(np.zeros((4, 12), np.float32)).host[:, :7]) for _ in range(4)]
        close(grouped_mm(left, right, out=outs), [a.host @ b.host for a, b in zip(left, right, strict=True)])
        assert calls.runs == [(4, STREAM)]

    def test_one_operand_may_be_in_every_product(self, put: Put, calls: Any) -> None:
        left, (_, *right), _ = pairs(put, 6)
        close(grouped_mm(left[:1] * 5, right), [left[0].host @ b.host for b in right])
        assert calls.runs == [(5, STREAM)]

    def test_empty_products_are_left_out(self, put: Put, calls: Any) -> None:
        left, right, expected = pairs(put, 5)
        found = grouped_mm([put(random(0, 8)), *left], [put(random(8, 4)), *right])
        close(found, [np.zeros((0, 4), np.float32), *expected])
        assert calls.runs == [(5, STREAM)]


class TestOneByOne:
    def test_few_products_are(self, put: Put, calls: Any, backend: Any) -> None:
        left, right, expected = pairs(put, LEAST_PRODUCTS - 1)
        close(grouped_mm(left, right), expected)
        assert calls.made == []
        assert grouped_mm([], []) == []

    def test_a_group_with_a_large_product_is(self, put: Put, calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(MOST_MULTIPLICATIONS, "float32", 8 * 4 * 4)
        left, right, expected = pairs(put, 6)
        close(grouped_mm(left, right), expected)
        assert calls.runs == []

    def test_results_on_operands_or_on_each_other_are_in_order(self, put: Put, calls: Any, cupy: Put) -> None:
        matrices = [put(random(4, 4, seed=number)) for number in range(6)]
        expected = matrices[0].host
        for each in matrices[1:5]:
            expected = expected @ each.host
        steps = [put(np.zeros((4, 4), np.float32)) for _ in range(4)]
        grouped_mm([matrices[0], *steps[:-1]], matrices[1:5], out=steps)
        np.testing.assert_allclose(steps[-1].host, expected, rtol=1e-4, atol=1e-5)
        one = put(np.zeros((4, 4), np.float32))
        grouped_mm(matrices[:4], matrices[2:], out=[one] * 4)
        np.testing.assert_allclose(one.host, matrices[3].host @ matrices[5].host, rtol=1e-4, atol=1e-5)
        assert calls.runs == []

    def test_misaligned_addresses_are(self, put: Put, calls: Any, cupy: Put) -> None:
        left, right, expected = pairs(put, 5)
        moved = put(np.concatenate([np.zeros(1, np.float32), left[2].host.ravel()])).host[1:].reshape(left[2].shape)
        left[2] = cupy(moved)
        close(grouped_mm(left, right), expected)
        assert calls.runs == []

    def test_other_types_are(self, put: Put, calls: Any) -> None:
        left, right, expected = pairs(put, 5, np.complex64)
        close(grouped_mm(left, right), expected)
        assert calls.runs == []

    @pytest.mark.parametrize("way", ["backwards", "turned result", "no products"])
    def test_what_must_be_copied_is(self, put: Put, calls: Any, cupy: Put, way: str) -> None:
        left, right, expected = pairs(put, 5)
        outs = None
        if way == "backwards":
            left[3] = cupy(left[3].host[::-1])
            expected[3] = left[3].host @ right[3].host
        elif way == "turned result":
            outs = [cupy(np.zeros(each.shape[::-1], np.float32).T) for each in expected]
        else:
            left[1], right[1], expected[1] = put(random(3, 0)), put(random(0, 4)), np.zeros((3, 4), np.float32)
        close(grouped_mm(left, right, out=outs), expected)
        assert calls.runs == []

    def test_a_group_that_the_library_refuses_is_from_then_on(
        self, put: Put, calls: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        left, right, expected = pairs(put, 5)
        calls.error = LaunchError("not today")
        for _ in range(3):
            close(grouped_mm(left, right), expected)
        assert [record.getMessage() for record in caplog.records] == [
            "a group of 5 products runs one by one: not today"
        ]
        calls.error = None
        close(grouped_mm(left, right), expected)
        assert calls.runs == []

    def test_a_group_under_a_capture_is_and_stays_so(
        self, put: Put, calls: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left, right, expected = pairs(put, 5)
        others = pairs(put, 7)
        capturing = False
        monkeypatch.setattr(backend, "is_capturing", lambda stream, *_, **__: capturing and stream == STREAM)
        close(grouped_mm(left, right), expected)
        assert calls.runs == [(5, STREAM)]
        capturing = True
        close(grouped_mm(left, right), expected)
        close(grouped_mm(*others[:2]), others[2])
        made = len(calls.made)
        capturing = False
        close(grouped_mm(left, right), expected)
        close(grouped_mm(*others[:2]), others[2])
        assert calls.runs == [(5, STREAM)]
        assert len(calls.made) == made, "nothing is made ready under a capture"

    @pytest.mark.parametrize("before", [False, True])
    def test_a_stream_that_is_none_is_and_nothing_is_remembered_of_it(
        self, put: Put, calls: Any, backend: Any, monkeypatch: pytest.MonkeyPatch, before: bool
    ) -> None:
        left, right, expected = pairs(put, 5)
        is_stream = True

        def is_capturing(stream: int, device: str | None = None) -> bool:
            if not is_stream:
                raise LaunchError(f"{stream:#x} is no stream")
            return False

        monkeypatch.setattr(backend, "is_capturing", is_capturing)
        if before:
            close(grouped_mm(left, right), expected)
        is_stream = False
        assert groups_module.groups().multiply(get_tuning_context(), left, right, None) is None
        is_stream = True
        close(grouped_mm(left, right), expected)
        assert len(calls.runs) == 1 + before

    def test_the_thread_s_own_default_stream_is(self, put: Put, calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        monkeypatch.setattr(sys.modules["cupy"].cuda, "get_current_stream", lambda _: SimpleNamespace(ptr=2))
        left, right, expected = pairs(put, 5)
        close(grouped_mm(left, right), expected)
        assert calls.runs == []

    def test_a_device_of_another_backend_is(self, put: Put, calls: Any, cupy: Put, backend: Any) -> None:
        left, right, expected = pairs(put, 5)
        backend.name = "another"
        close(grouped_mm(left, right), expected)
        assert calls.made == []


class TestWhatIsMadeReady:
    def test_knows_ceiling_and_device(self, put: Put, calls: Any, context: TuningContext) -> None:
        left, right, _ = pairs(put, 5)
        grouped_mm(left, right)
        with context.configure(workspace_mib=3):
            grouped_mm(left, right)
        assert calls.made == [("float32", 0, 32 << 20), ("float32", 0, 3 << 20)]

    def test_is_bounded_but_what_was_captured_is_kept(
        self, put: Put, calls: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(groups_module, "_MOST_LAYOUTS", 6)
        captured = pairs(put, 5)
        monkeypatch.setattr(backend, "is_capturing", lambda *_, **__: True)
        grouped_mm(*captured[:2])
        monkeypatch.setattr(backend, "is_capturing", lambda *_, **__: False)
        for count in range(6, 30):
            grouped_mm(*pairs(put, count)[:2])
        assert len(groups_module.groups()._by_layout) <= 6
        runs = len(calls.runs)
        grouped_mm(*captured[:2])
        assert len(calls.runs) == runs


def test_host_arrays_are_multiplied_as_numpy_does(context: TuningContext) -> None:
    left, right = [random(3, 5)] * 6, [random(5, 4)] * 6
    for found in grouped_mm(left, right):
        np.testing.assert_allclose(found, left[0] @ right[0], rtol=1e-5)
