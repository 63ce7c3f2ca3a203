"""A launch in C: what the library's function gets, and what comes of what it answers."""

import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tensorplay.errors import LaunchError
from tensorplay.extensions import extension

built = extension("tensorplay.backends.cublaslt._launch")
pytestmark = pytest.mark.skipif(built is None, reason="the extension was not built: no compiler, or no headers")

POINTER = ctypes.c_void_p
MATMUL = ctypes.CFUNCTYPE(ctypes.c_int, *[POINTER] * 14, ctypes.c_size_t, POINTER)
CURRENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(POINTER))
READY = tuple(range(101, 110))
# The largest address that there is, to see that nothing is cut off.
FAR = 2**64 - 16


class Library:
    """As cuBLASLt: notes what it gets, and answers a status; and as the driver, with a context that is current."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, ...]] = []
        self.status = 0
        self.context = 0x77
        self._matmul = MATMUL(self._note)
        self._current = CURRENT(self._tell)
        self.matmul, self.current = (ctypes.cast(each, POINTER).value or 0 for each in (self._matmul, self._current))

    def _note(self, *arguments: int | None) -> int:
        self.calls.append(tuple(each or 0 for each in arguments))
        return self.status

    def _tell(self, into: Any) -> int:
        into[0] = self.context
        return 0


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def make(library: Library) -> Callable[..., Any]:
    """Return what makes a launch of the library's function, with other arguments where they are given."""

    def refused(status: int) -> None:
        raise LaunchError(f"status {status}")

    def made(**changed: Any) -> Any:
        given: dict[str, Any] = {
            "matmul": library.matmul,
            "arguments": READY,
            "workspace": None,
            "workspace_bytes": 0,
            "refused": refused,
            "elsewhere": None,
            "current": 0,
            "context": 0,
            "owner": None,
        }
        return built.Launch(**given | changed)  # type: ignore[union-attr]  # skipped where it is None

    return made


def test_the_library_gets_the_operands_in_its_order_and_what_was_made_ready(
    make: Callable[..., Any], library: Library
) -> None:
    handle, operation, alpha, a, b, beta, c, d, algorithm = READY
    assert make()(1, 2, 3, FAR) is None
    # By columns, the right operand is the first.
    assert library.calls == [(handle, operation, alpha, 2, a, 1, b, beta, 3, c, 3, d, algorithm, 0, 0, FAR)]


def test_the_stream_s_workspace_is_asked_for_in_each_call(make: Callable[..., Any], library: Library) -> None:
    asked: list[tuple[int, int]] = []

    def workspace(stream: int, nbytes: int) -> int:
        asked.append((stream, nbytes))
        return FAR + len(asked)

    launch = make(workspace=workspace, workspace_bytes=4096)
    launch(1, 2, 3, 0)
    launch(1, 2, 3, FAR)
    assert asked == [(0, 4096), (FAR, 4096)]
    assert [call[13:] for call in library.calls] == [(FAR + 1, 4096, 0), (FAR + 2, 4096, FAR)]


def test_a_workspace_that_there_is_none_of_is_that_error_and_nothing_is_launched(
    make: Callable[..., Any], library: Library
) -> None:
    def workspace(stream: int, nbytes: int) -> int:
        raise MemoryError("the device is full")

    with pytest.raises(MemoryError, match="the device is full"):
        make(workspace=workspace, workspace_bytes=1)(1, 2, 3, 4)
    with pytest.raises(TypeError):
        make(workspace=lambda *_: "here", workspace_bytes=1)(1, 2, 3, 4)
    assert library.calls == []


@pytest.mark.parametrize("status", [1, 15, -3])
def test_what_the_library_refuses_is_said_by_who_knows_its_words(
    make: Callable[..., Any], library: Library, status: int
) -> None:
    library.status = status
    with pytest.raises(LaunchError, match=f"^status {status}$"):
        make()(1, 2, 3, 4)


def test_a_refusal_is_never_taken_for_a_launch(make: Callable[..., Any], library: Library) -> None:
    library.status = 7
    with pytest.raises(SystemError, match="status 7; it must raise"):
        make(refused=lambda _: None)(1, 2, 3, 4)


def test_on_a_thread_of_another_device_the_longer_way_runs(make: Callable[..., Any], library: Library) -> None:
    taken: list[tuple[int, ...]] = []
    launch = make(elsewhere=lambda *operands: taken.append(operands), current=library.current, context=0x77)
    launch(1, 2, 3, FAR)
    library.context = 0x78
    launch(4, 5, 6, FAR)
    assert (len(library.calls), taken) == (1, [(4, 5, 6, FAR)])


def test_other_threads_go_on_while_the_library_waits(make: Callable[..., Any], library: Library) -> None:
    launched, go_on = threading.Event(), threading.Event()

    def waits(*_: object) -> int:
        launched.set()
        return 0 if go_on.wait(20) else 1

    function = MATMUL(waits)
    launch = make(matmul=ctypes.cast(function, POINTER).value)
    thread = threading.Thread(target=launch, args=(1, 2, 3, 4))
    thread.start()
    assert launched.wait(20)
    go_on.set()
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.parametrize("given", [(), (1, 2, 3), (1, 2, 3, 4, 5), (1, 2, 3, "4"), (1.5, 2, 3, 4), (2**64, 2, 3, 4)])
def test_what_is_no_launch_s_operands_is_refused(
    make: Callable[..., Any], library: Library, given: tuple[Any, ...]
) -> None:
    with pytest.raises((TypeError, OverflowError)):
        make()(*given)
    with pytest.raises(TypeError):
        make()(1, 2, 3, stream=4)
    assert library.calls == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"arguments": READY[1:]}, "allowed: from 0 up, and 9"),
        ({"workspace_bytes": -1}, "allowed: from 0 up, and 9"),
        ({"matmul": 0}, "the address of cublasLtMatmul"),
    ],
)
def test_what_cannot_be_launched_is_not_made(make: Callable[..., Any], changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make(**changed)
    with pytest.raises(TypeError):
        make(arguments=("handle", *READY[1:]))


def test_what_it_holds_is_let_go_with_it_and_in_a_ring_too(make: Callable[..., Any]) -> None:
    class Owner:
        launch: Any = None

    owner = Owner()
    launch = make(owner=owner)
    seen = weakref.ref(owner)
    owner.launch = launch
    del owner, launch
    gc.collect()
    assert seen() is None


def test_calls_leave_no_references_behind(make: Callable[..., Any], library: Library) -> None:
    operands = tuple(2**40 + place for place in range(4))
    launch = make(workspace=lambda *_: 2**50, workspace_bytes=8)
    before = [sys.getrefcount(each) for each in operands]
    for _ in range(50):
        launch(*operands)
    library.status = 3
    for _ in range(50):
        with pytest.raises(LaunchError):
            launch(*operands)
    assert [sys.getrefcount(each) for each in operands] == before
