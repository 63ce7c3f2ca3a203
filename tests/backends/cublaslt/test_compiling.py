"""Kernels are compiled several at once, each once, on threads that nobody need know of."""

import math
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from tensorplay.backends.cublaslt import compiler as compiler_module
from tensorplay.backends.cublaslt import compiling
from tensorplay.backends.cublaslt.compiling import begin_compiling, code_of, has_room, is_compiling, wait_for_any
from tensorplay.backends.cublaslt.cubin_cache import CubinCache
from tensorplay.errors import LaunchError

CAPABILITY = (9, 0)
LONG_S = 20.0


class Compiler:
    """Takes sources, and is done with each when it is let go."""

    def __init__(self) -> None:
        self.compiled: list[str] = []
        self.threads: set[str] = set()
        self.under_way = 0
        self.most_under_way = 0
        self.is_open = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, source: str, capability: tuple[int, int]) -> bytes:
        assert capability == CAPABILITY
        with self._lock:
            self.compiled.append(source)
            self.threads.add(threading.current_thread().name)
            self.under_way += 1
            self.most_under_way = max(self.under_way, self.most_under_way)
        assert self.is_open.wait(LONG_S)
        with self._lock:
            self.under_way -= 1
        if source.startswith("bad"):
            raise LaunchError(f"{source} does not compile")
        return f"code of {source}".encode()


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Compiler]:
    """A compiler in the place of the real one, which needs no package, and keeps its files in a folder of its own."""
    made, files = Compiler(), CubinCache(tmp_path)
    monkeypatch.setattr(compiler_module, "compile_source", made)
    monkeypatch.setattr(compiler_module, "_compiler_version", lambda: "1.0")
    monkeypatch.setattr(compiling, "kernel_files", lambda: files)
    monkeypatch.setattr(compiling, "at_once", lambda: 4)
    monkeypatch.setattr(compiling, "usable_cpus", lambda: 16)
    yield made
    made.is_open.set()
    compiling._waiting.clear()
    for thread in threading.enumerate():
        # What is left over would be compiled by the next test's compiler.
        if thread.name.startswith("tensorplay-compile"):
            thread.join(LONG_S)


def wait_until_under_way(compiler: Compiler, count: int) -> None:
    done = threading.Event()
    for _ in range(2000):
        if compiler.most_under_way >= count:
            return
        done.wait(0.01)
    raise AssertionError(f"{compiler.most_under_way} of {count} were compiled at once")


def test_several_are_compiled_at_once_and_nobody_waits_for_them(compiler: Compiler) -> None:
    begin_compiling(["one", "two", "three"], CAPABILITY)
    wait_until_under_way(compiler, 3)
    assert threading.current_thread().name not in compiler.threads
    compiler.is_open.set()
    assert [code_of(each, CAPABILITY) for each in ("two", "one")] == [b"code of two", b"code of one"]
    assert sorted(compiler.compiled) == ["one", "three", "two"]


def test_no_more_at_once_than_there_are_processors(compiler: Compiler) -> None:
    begin_compiling([str(number) for number in range(9)], CAPABILITY)
    wait_until_under_way(compiler, 4)
    compiler.is_open.set()
    assert [code_of(str(number), CAPABILITY) for number in range(9)] == [f"code of {n}".encode() for n in range(9)]
    assert compiler.most_under_way == 4


def test_what_is_under_way_or_on_disk_is_not_compiled_again(compiler: Compiler) -> None:
    begin_compiling(["one"], CAPABILITY)
    begin_compiling(["one", "two"], CAPABILITY)
    compiler.is_open.set()
    for _ in range(2):
        assert code_of("one", CAPABILITY) == b"code of one"
        assert code_of("two", CAPABILITY) == b"code of two"
    begin_compiling(["one"], CAPABILITY)
    assert code_of("one", CAPABILITY) == b"code of one"
    assert sorted(compiler.compiled) == ["one", "two"]


def test_several_who_ask_for_one_that_is_under_way_all_wait_for_it(compiler: Compiler) -> None:
    begin_compiling(["one"], CAPABILITY)
    wait_until_under_way(compiler, 1)
    with ThreadPoolExecutor(3) as askers:
        answers = [askers.submit(code_of, "one", CAPABILITY) for _ in range(3)]
        assert not wait(answers, 0.1).done
        compiler.is_open.set()
        assert {answer.result(LONG_S) for answer in answers} == {b"code of one"}
    assert compiler.compiled == ["one"]
    assert not compiling._waiting


def test_what_was_not_begun_is_compiled_when_it_is_asked_for(compiler: Compiler) -> None:
    compiler.is_open.set()
    assert code_of("one", CAPABILITY) == b"code of one"
    assert compiler.threads == {threading.current_thread().name}


def test_what_does_not_compile_says_so_to_whoever_asks_and_harms_no_other(compiler: Compiler) -> None:
    compiler.is_open.set()
    begin_compiling(["bad", "good"], CAPABILITY)
    with pytest.raises(LaunchError, match="bad does not compile"):
        code_of("bad", CAPABILITY)
    assert code_of("good", CAPABILITY) == b"code of good"


def test_what_nobody_asks_for_is_let_go(compiler: Compiler) -> None:
    compiler.is_open.set()
    for number in range(40):
        begin_compiling([f"{number}, {each}" for each in range(4)], CAPABILITY)
    assert len(compiling._waiting) <= compiling._MOST_WAITING
    assert code_of("0, 0", CAPABILITY) == b"code of 0, 0"


def test_what_is_done_is_let_go_before_what_is_under_way(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_MOST_WAITING", 4)
    begin_compiling(["one"], CAPABILITY)
    wait_until_under_way(compiler, 1)
    done = [Future[bytes]() for _ in range(3)]
    for number, future in enumerate(done):
        future.set_result(b"code")
        compiling._waiting[f"done {number}", CAPABILITY] = future
    begin_compiling(["two"], CAPABILITY)
    assert is_compiling("one", CAPABILITY), "it would be compiled a second time"
    assert [source for source, _ in compiling._waiting] == ["one", "done 1", "done 2", "two"]
    begin_compiling(["two", "two", "one"], CAPABILITY)
    assert len(compiling._waiting) == 4, "what is there already needs no place"
    compiler.is_open.set()
    assert code_of("one", CAPABILITY) == b"code of one"
    assert code_of("two", CAPABILITY) == b"code of two"
    assert sorted(compiler.compiled) == ["one", "two"]


def test_a_source_that_comes_twice_is_compiled_once(compiler: Compiler) -> None:
    begin_compiling(["one", "one"], CAPABILITY)
    compiler.is_open.set()
    assert code_of("one", CAPABILITY) == b"code of one"
    for thread in threading.enumerate():
        if thread.name.startswith("tensorplay-compile"):
            thread.join(LONG_S)
    assert compiler.compiled == ["one"]


def test_without_threads_each_is_compiled_when_it_is_asked_for(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    begin_compiling(["one", "two"], CAPABILITY)
    compiler.is_open.set()
    assert code_of("one", CAPABILITY) == b"code of one"
    assert code_of("two", CAPABILITY) == b"code of two"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_waits_for_no_thread_of_its_parent(compiler: Compiler) -> None:
    begin_compiling(["one"], CAPABILITY)
    wait_until_under_way(compiler, 1)
    child = os.fork()
    if child == 0:
        compiler.is_open = threading.Event()
        compiler.is_open.set()
        compiler._lock = threading.Lock()
        os._exit(0 if code_of("one", CAPABILITY) == b"code of one" else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_who_is_compiled_can_be_asked_without_waiting(compiler: Compiler) -> None:
    assert not is_compiling("one", CAPABILITY)
    begin_compiling(["one"], CAPABILITY)
    assert is_compiling("one", CAPABILITY)
    assert not is_compiling("one", (8, 0))
    wait_until_under_way(compiler, 1)
    for seconds in (-1.0, 0.0, 1e9, math.inf):
        wait_for_any(seconds)
    assert is_compiling("one", CAPABILITY), "nobody waits for longer than a few milliseconds"
    compiler.is_open.set()
    for _ in range(2000):
        if not is_compiling("one", CAPABILITY):
            break
        wait_for_any(LONG_S)
    assert not is_compiling("one", CAPABILITY)
    assert code_of("one", CAPABILITY) == b"code of one"
    wait_for_any(LONG_S)


def test_there_is_room_for_as_many_as_there_are_processors(compiler: Compiler) -> None:
    begin_compiling(["one", "two", "three"], CAPABILITY)
    assert has_room()
    begin_compiling(["four"], CAPABILITY)
    assert not has_room()
    compiler.is_open.set()
    assert code_of("two", CAPABILITY) == b"code of two"
    # What is done takes no room, whether somebody has asked for it or not.
    assert has_room()


@pytest.mark.parametrize(("processors", "room"), [(1, 1), (2, 1), (4, 3), (5, 4), (64, 4)])
def test_a_processor_is_left_to_whoever_measures_meanwhile(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch, processors: int, room: int
) -> None:
    monkeypatch.setattr(compiling, "usable_cpus", lambda: processors)
    begun = 0
    while has_room():
        begin_compiling([f"kernel {begun}"], CAPABILITY)
        begun += 1
    assert begun == room
