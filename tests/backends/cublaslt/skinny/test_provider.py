"""Neighbours of a skinny kernel come as they are compiled, the rest being compiled meanwhile, and no one waits."""

import threading
from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace

import pytest

from tensorplay.backends.base import CandidateQuery, Plan
from tensorplay.backends.cublaslt import compiling
from tensorplay.backends.cublaslt.skinny import modules, provider
from tensorplay.backends.cublaslt.skinny.choice import neighbouring
from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.shape import skinny_shape
from tensorplay.backends.cublaslt.skinny.source_text import source_text
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, SourceKernelId, dtype_of_name, parse_kernel_id
from tensorplay.typing import Pending

LONG_S = 20.0
AT_ONCE = 3
SEARCH = CandidateQuery(breadth="search")


class Shop:
    """Compiles one kernel for each that is let go; loads whatever is compiled, but for those it refuses."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.waited: list[str] = []
        self.refused: set[str] = set()
        self._let_go = threading.Semaphore(0)

    def machine_code(self, source: str, *_further: object) -> bytes:
        self.begun.append(source)
        assert self._let_go.acquire(timeout=LONG_S)
        return b"code"

    def let_go(self, count: int) -> None:
        for _ in range(count):
            self._let_go.release()

    def refuse(self, *_anything: object) -> Plan:
        raise KernelUnavailableError("no more are loaded")

    def plan(self, problem: GemmProblem, configuration: Configuration) -> Plan:
        source = source_text(configuration, skinny_shape(problem))
        if compiling.is_compiling(source, (9, 0)):
            self.waited.append(source)
        assert compiling.code_of(source, (9, 0)) == b"code"
        kernel = str(configuration.kernel_id)
        if kernel in self.refused:
            raise KernelUnavailableError("not here")
        return Plan(problem, kernel, lambda *_: None)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Return a compiler and loader that need no device and no package."""
    made = Shop()
    monkeypatch.setattr(compiling, "machine_code", made.machine_code)
    monkeypatch.setattr(compiling, "kernel_files", lambda: None)
    monkeypatch.setattr(provider, "skinny_plan", made.plan)
    monkeypatch.setattr(provider, "device", lambda _: SimpleNamespace(multiprocessors=132, capability=(9, 0)))
    for module in (compiling, provider):
        monkeypatch.setattr(module, "at_once", lambda: AT_ONCE)
    monkeypatch.setattr(compiling, "usable_cpus", lambda: 16)
    compiling._waiting.clear()
    yield made
    made.let_go(1000)
    compiling._waiting.clear()
    for thread in threading.enumerate():
        if thread.name.startswith("tensorplay-compile"):
            thread.join(LONG_S)


@pytest.fixture
def problem() -> GemmProblem:
    dtype = dtype_of_name("bfloat16")
    assert dtype is not None
    return GemmProblem(dtype=dtype, m=8, n=4096, k=4096, device="0", transpose_right=True)


def kernel_id() -> SourceKernelId:
    found = parse_kernel_id("skinny_mma2_tile32_rows32_split1_vec16_stages4_threads128")
    assert isinstance(found, SourceKernelId)
    return found


def wait_until_one_is_made() -> None:
    for _ in range(2000):
        if any(future.done() for future in list(compiling._waiting.values())):
            return
        compiling.wait_for_any(LONG_S)
    raise AssertionError("none was compiled")


def test_while_none_is_compiled_pending_comes_and_as_many_are_under_way_as_may_be(
    shop: Shop, problem: GemmProblem
) -> None:
    neighbours = provider.SkinnySource().neighbours(problem, kernel_id(), SEARCH)
    assert all(isinstance(next(neighbours), Pending) for _ in range(20))
    assert len(compiling._waiting) == AT_ONCE
    shop.let_go(1)
    wait_until_one_is_made()
    assert isinstance(next(neighbours), Plan)
    assert isinstance(next(neighbours), Pending)
    assert len(compiling._waiting) == AT_ONCE, "the next one takes the place"


def test_all_neighbours_come_once_in_the_end_and_nobody_waits_for_the_compiler(
    shop: Shop, problem: GemmProblem
) -> None:
    shop.let_go(1000)
    found = []
    for each in provider.SkinnySource().neighbours(problem, kernel_id(), SEARCH):
        if isinstance(each, Pending):
            each.wait(LONG_S)
        else:
            found.append(each.kernel)
    beside = {str(each.kernel_id) for each in neighbouring(Configuration.of(kernel_id()), skinny_shape(problem))}
    assert sorted(found) == sorted(beside)
    assert not shop.waited


def test_several_that_are_asked_for_by_turns_share_the_processors(shop: Shop, problem: GemmProblem) -> None:
    source = provider.SkinnySource()
    other = parse_kernel_id("skinny_mma2_tile64_rows64_split1_vec16_stages4_threads128")
    assert isinstance(other, SourceKernelId)
    first, second = (source.neighbours(problem, each, SEARCH) for each in (kernel_id(), other))
    for _ in range(5):
        assert isinstance(next(first), Pending)
        assert isinstance(next(second), Pending)
    assert len(compiling._waiting) == AT_ONCE


def test_one_that_cannot_be_had_is_passed_over(shop: Shop, problem: GemmProblem) -> None:
    beside = [str(each.kernel_id) for each in neighbouring(Configuration.of(kernel_id()), skinny_shape(problem))]
    shop.refused = set(beside[::2])
    shop.let_go(1000)
    neighbours = provider.SkinnySource().neighbours(problem, kernel_id(), SEARCH)
    found = {each.kernel for each in neighbours if isinstance(each, Plan)}
    assert found == set(beside[1::2])


def test_those_that_are_loaded_wait_for_no_processor(
    shop: Shop, problem: GemmProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling.begin_compiling(["one", "two", "three"], (9, 0))
    assert not compiling.has_room()
    shape = skinny_shape(problem)
    beside = list(neighbouring(Configuration.of(kernel_id()), shape))
    loaded = {source_text(each, shape) for each in beside}
    monkeypatch.setattr(provider, "is_loaded", lambda _, source: source in loaded)
    monkeypatch.setattr(provider, "skinny_plan", lambda _, each: Plan(problem, str(each.kernel_id), lambda *_: None))
    found = list(islice(provider.SkinnySource().neighbours(problem, kernel_id(), SEARCH), 100))
    assert {each.kernel for each in found if isinstance(each, Plan)} == {str(each.kernel_id) for each in beside}
    assert len(found) == len(beside), "nothing is being made, so nobody need ask again"


def test_without_threads_all_come_and_none_is_waited_for(
    shop: Shop, problem: GemmProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    shop.let_go(1000)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    found = list(provider.SkinnySource().neighbours(problem, kernel_id(), SEARCH))
    beside = {str(each.kernel_id) for each in neighbouring(Configuration.of(kernel_id()), skinny_shape(problem))}
    assert {each.kernel for each in found if isinstance(each, Plan)} == beside
    assert len(found) == len(beside)


def test_nothing_is_compiled_once_no_more_kernels_are_loaded(
    shop: Shop, problem: GemmProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "_functions", dict.fromkeys(range(modules.MOST_LOADED)))
    monkeypatch.setattr(provider, "skinny_plan", shop.refuse)
    source = provider.SkinnySource()
    assert list(source.candidates(problem, SEARCH)) == []
    assert list(source.neighbours(problem, kernel_id(), SEARCH)) == []
    assert not compiling._waiting
    assert not shop.begun
