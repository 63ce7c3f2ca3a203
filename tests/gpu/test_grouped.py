"""Groups: many products in one call of the library, on lists of addresses that are written while others are read."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorplay.backends.cublaslt import grouped_call
from tensorplay.backends.cublaslt.device import current
from tensorplay.backends.cublaslt.grouped_call import MOST_PRODUCTS, GroupedCall
from tensorplay.backends.cublaslt.member import Member
from tensorplay.backends.cublaslt.spin import spin
from tensorplay.cuda import asarray, grouped_mm
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

TYPES = ("float32", "tf32", "float64", "float16", "bfloat16")
# As a share of sqrt(k) times the product of magnitudes.
BOUNDS = {"float32": 1e-6, "tf32": 2e-3, "float64": 1e-14, "float16": 2e-3, "bfloat16": 1e-2}
SPIN_NS = 20_000_000
Tensors = list[Any]


@pytest.fixture
def context(tmp_path: Path) -> Iterator[TuningContext]:
    """The process's context for one test, with the feature off."""
    made = TuningContext(environ={}, directory=tmp_path)
    with use_context(made) as context:
        yield context
        context.close()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of products of each call of the library's, as they come."""
    made: list[int] = []
    plain = GroupedCall._enqueue

    def enqueue(self: GroupedCall, raw: int, part: Any, *rest: Any) -> None:
        made.append(part.products)
        plain(self, raw, part, *rest)

    monkeypatch.setattr(GroupedCall, "_enqueue", enqueue)
    return made


def drawn(rng: np.random.Generator, *, most: int = 200) -> Member:
    sizes = [size for size in (1, 2, 7, 8, 16, 33, 64, 129, 192) if size <= most]
    m, n, k = (int(size) for size in rng.choice(sizes, 3))
    left, right = (bool(turned) for turned in rng.integers(0, 2, 2))
    more = [int(padding) for padding in rng.choice((0, 0, 8, 3), 3)]
    return Member(left, right, m, n, k, (m if left else k) + more[0], (k if right else n) + more[1], n + more[2])


def matrix(torch: Any, rows: int, columns: int, ld: int, dtype: str, *, turned: bool = False) -> Any:
    """Return a random matrix that is stored so."""
    stored = (columns, rows) if turned else (rows, columns)
    kind = getattr(torch, "float32" if dtype == "tf32" else dtype)
    made = (torch.rand(stored[0], ld, device="cuda", dtype=torch.float32) * 2 - 1).to(kind)[:, : stored[1]]
    return made.T if turned else made


class Products:
    """Operands of a group, and whether its results are right."""

    def __init__(self, torch: Any, members: list[Member], dtype: str) -> None:
        self.torch, self.dtype = torch, dtype
        self.left = [matrix(torch, a.m, a.k, a.ld_left, dtype, turned=a.transpose_left) for a in members]
        self.right = [matrix(torch, a.k, a.n, a.ld_right, dtype, turned=a.transpose_right) for a in members]
        self.out = [matrix(torch, a.m, a.n, a.ld_out, dtype) for a in members]
        torch.cuda.synchronize()

    def run(self, call: GroupedCall, stream: int, alpha: float = 1.0, beta: float = 0.0) -> None:
        """Enqueue them."""
        operands = [[tensor.data_ptr() for tensor in each] for each in (self.left, self.right, self.out)]
        call.run(*operands, alpha, beta, stream=stream)

    def check(self, results: Tensors | None = None, before: Tensors | None = None, alpha: float = 1.0) -> None:
        """Compare results with float64; `before` is what they were added to."""
        self.torch.cuda.synchronize()
        for place, (a, b) in enumerate(zip(self.left, self.right, strict=True)):
            found = (results or self.out)[place].double()
            exact = alpha * (a.double() @ b.double())
            magnitude = abs(alpha) * (a.double().abs() @ b.double().abs())
            if before is not None:
                exact, magnitude = exact + before[place].double(), magnitude + before[place].double().abs()
            least = 1e-4 if self.dtype == "float16" else 1e-30  # Its smallest numbers have few digits.
            error = ((found - exact).abs() / (magnitude + least)).max().item()
            assert error <= BOUNDS[self.dtype] * max(4.0, a.shape[1] ** 0.5), (place, a.shape, b.shape, error)

    @property
    def results(self) -> Tensors:
        """Return a copy of the results."""
        return [tensor.clone() for tensor in self.out]


def here(torch: Any) -> int:
    return int(torch.cuda.current_stream().cuda_stream)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("alike", [False, True])
def test_products_of_any_sizes_are_right_and_repeat_to_the_bit(torch: Any, dtype: str, alike: bool) -> None:
    rng = np.random.default_rng(5)
    for count in (2, 5, 40):
        members = [drawn(rng)] * count if alike else [drawn(rng) for _ in range(count)]
        call, products = GroupedCall(members, dtype=dtype, ordinal=0), Products(torch, members, dtype)
        products.run(call, here(torch))
        products.check()
        first = products.results
        for _ in range(3):
            for tensor in products.out:
                tensor.fill_(float("nan"))
            products.run(call, here(torch))
            torch.cuda.synchronize()
            assert all(torch.equal(one, other) for one, other in zip(first, products.out, strict=True))
        others = Products(torch, members, dtype)
        others.run(call, here(torch))
        others.check()


@pytest.mark.parametrize("dtype", TYPES)
def test_factors_are_applied(torch: Any, dtype: str) -> None:
    members = [drawn(np.random.default_rng(6)) for _ in range(6)]
    call, products = GroupedCall(members, dtype=dtype, ordinal=0), Products(torch, members, dtype)
    before = products.results
    products.run(call, here(torch), 1.0, 1.0)
    products.check(before=before)
    before = [2.0 * tensor for tensor in products.results]
    products.run(call, here(torch), -0.5, 2.0)
    products.check(before=before, alpha=-0.5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_lists_in_flight_are_not_overwritten(torch: Any, dtype: str) -> None:
    # More addresses than there is room for, all enqueued while the device is kept busy.
    rng = np.random.default_rng(7)
    members = [drawn(rng, most=64) for _ in range(64)]
    call = GroupedCall(members, dtype=dtype, ordinal=0)
    groups = [Products(torch, members, dtype) for _ in range(100)]
    stream = torch.cuda.Stream()
    groups[0].run(call, stream.cuda_stream)
    torch.cuda.synchronize()
    with current(0):
        spin(0, stream.cuda_stream, SPIN_NS)
    for _ in range(2):
        for each in groups:
            each.run(call, stream.cuda_stream)
    for each in groups:
        each.check()


def test_streams_and_threads_have_lists_of_their_own(torch: Any) -> None:
    members = [drawn(np.random.default_rng(8), most=64) for _ in range(16)]
    call = GroupedCall(members, dtype="float32", ordinal=0)
    groups = [[Products(torch, members, "float32") for _ in range(40)] for _ in range(4)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            # A thread of its own has no current context; two of them share a stream.
            stream = streams[number // 2].cuda_stream
            for _ in range(3):
                for each in groups[number]:
                    each.run(call, stream)
        except BaseException as error:  # noqa: BLE001 - the thread that asserts is another
            failures.append(error)

    streams = [torch.cuda.Stream() for _ in range(2)]
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for each in groups:
        for products in each:
            products.check()


def test_memory_is_bounded_whatever_streams_there_are(torch: Any) -> None:
    from tensorplay.backends.cublaslt.library import driver
    from tensorplay.backends.cublaslt.workspace import workspaces

    members = [drawn(np.random.default_rng(9)) for _ in range(4)]
    call, products = GroupedCall(members, dtype="float32", ordinal=0), Products(torch, members, "float32")
    for _ in range(80):
        stream = int(driver().cuStreamCreate(1)[1])
        workspaces(0).lend(stream)
        products.run(call, stream)
        products.check()
        workspaces(0).take_back(stream)
        driver().cuStreamDestroy(stream)
    assert len(grouped_call._pointers[0]._rings) <= 64


def test_a_group_of_more_products_than_one_call_takes_is_several(torch: Any, calls: list[int]) -> None:
    member = Member(False, False, 4, 4, 4, 4, 4, 4)
    members = [member, member._replace(m=3)] * (MOST_PRODUCTS // 2 + 3)
    products = Products(torch, members, "float32")
    products.run(GroupedCall(members, dtype="float32", ordinal=0), here(torch))
    products.check()
    assert calls == [MOST_PRODUCTS, len(members) - MOST_PRODUCTS]


class TestGroupedMm:
    @pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
    def test_small_products_go_at_once(self, torch: Any, context: TuningContext, calls: list[int], dtype: str) -> None:
        rng = np.random.default_rng(10)
        products = Products(torch, [drawn(rng) for _ in range(20)], dtype)
        for out in (products.out, products.out, products.out, None, None, None):
            found = grouped_mm(products.left, products.right, out=out)
            products.check(found)
        assert calls == [20] * 6
        assert context.stats()["first_choice"] == 120

    def test_large_ones_do_not(self, torch: Any, context: TuningContext, calls: list[int]) -> None:
        left, right = ([torch.randn(2048, 2048, device="cuda") for _ in range(4)] for _ in range(2))
        for found, a, b in zip(grouped_mm(left, right), left, right, strict=True):
            torch.testing.assert_close(found, a @ b, rtol=1e-3, atol=1e-2)
        assert calls == []

    def test_experts_without_tokens_are_left_out(self, torch: Any, context: TuningContext, calls: list[int]) -> None:
        tokens, weights = torch.randn(30, 64, device="cuda"), torch.randn(8, 64, 48, device="cuda")
        counts = [0, 7, 3, 0, 9, 1, 6, 4]
        parts = list(tokens.split(counts))
        for _ in range(3):
            out = torch.full((30, 48), float("nan"), device="cuda")
            grouped_mm(parts, list(weights), out=list(out.split(counts)))
            expected = torch.cat([part.double() @ weight.double() for part, weight in zip(parts, weights, strict=True)])
            torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-4)
        assert calls == [6] * 3

    def test_one_input_may_meet_many_weights(self, torch: Any, context: TuningContext, calls: list[int]) -> None:
        x, weights = torch.randn(16, 128, device="cuda"), [torch.randn(128, 64, device="cuda") for _ in range(8)]
        for _ in range(3):
            for found, weight in zip(grouped_mm([x] * 8, weights), weights, strict=True):
                torch.testing.assert_close(found.double(), x.double() @ weight.double(), rtol=1e-4, atol=1e-4)
        assert calls == [8] * 3

    def test_chained_products_are_done_in_order(self, torch: Any, context: TuningContext, calls: list[int]) -> None:
        first, weights = torch.eye(32, device="cuda"), [torch.randn(32, 32, device="cuda") / 6 for _ in range(6)]
        steps = [torch.empty(32, 32, device="cuda") for _ in range(6)]
        grouped_mm([first, *steps[:-1]], weights, out=steps)
        expected = first.double()
        for each in weights:
            expected = expected @ each.double()
        torch.testing.assert_close(steps[-1].double(), expected, rtol=1e-4, atol=1e-4)
        assert calls == []

    def test_a_capture_is_a_loop_and_eager_reruns_have_its_bits(
        self, torch: Any, context: TuningContext, calls: list[int]
    ) -> None:
        context.enable(True)
        context.tuning_enable(False)
        members = [drawn(np.random.default_rng(11)) for _ in range(8)]
        products = Products(torch, members, "float32")
        grouped_mm(products.left, products.right, out=products.out)
        assert calls == [8]
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            grouped_mm(products.left, products.right, out=products.out)
        graph.replay()
        products.check()
        replayed = products.results
        grouped_mm(products.left, products.right, out=products.out)
        torch.cuda.synchronize()
        assert all(torch.equal(one, other) for one, other in zip(replayed, products.out, strict=True))
        assert calls == [8]

    def test_a_group_first_met_under_a_capture_is_right(
        self, torch: Any, context: TuningContext, calls: list[int]
    ) -> None:
        # One that differs from all others.
        left, right = ([torch.randn(52, 52, device="cuda") for _ in range(5)] for _ in range(2))
        out = [torch.empty(52, 52, device="cuda") for _ in range(5)]
        torch.mm(left[0], right[0])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            grouped_mm(left, right, out=out)
        graph.replay()
        torch.cuda.synchronize()
        for a, b, found in zip(left, right, out, strict=True):
            torch.testing.assert_close(found.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-4)
        assert calls == []

    def test_arrays_of_ours_go_at_once_too(self, context: TuningContext, calls: list[int]) -> None:
        rng = np.random.default_rng(12)
        left = [rng.uniform(-1, 1, (size, 24)).astype(np.float32) for size in (1, 5, 8, 30, 2)]
        right = [rng.uniform(-1, 1, (24, 16)).astype(np.float32) for _ in left]
        for _ in range(2):
            found = grouped_mm([asarray(a) for a in left], [asarray(b) for b in right])
            for each, a, b in zip(found, left, right, strict=True):
                np.testing.assert_allclose(each.numpy(), a @ b, rtol=1e-4, atol=1e-5)
        assert calls == [5, 5]
