"""Hits in C: which calls they take, what they look at in each, and what they keep."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError
from tensorplay.extensions import extension
from tensorplay.ops.device.torch_shortcut import TorchShortcut, torch_shortcut
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.process import use_context

Array = NDArray[Any]
Put = Callable[..., Any]
Long = list[tuple[Any, ...]]
# Here it is a fake device's arrays, whose type no checker knows.
tensorplay: Any = package
built = extension("tensorplay.ops.device._direct")
pytestmark = [
    pytest.mark.usefixtures("context", "torch"),
    pytest.mark.parametrize("torch", ["hits in C"], indirect=True),
]


@pytest.fixture
def long(torch: Any, monkeypatch: pytest.MonkeyPatch) -> Long:
    """Return a list of the calls that went on to Python."""
    calls: Long = []
    in_python = TorchShortcut.mm_in_python

    def noted(self: TorchShortcut, context: TuningContext, a: Any, b: Any, out: Any) -> Any:
        calls.append((a, b, out))
        return in_python(self, context, a, b, out)

    monkeypatch.setattr(TorchShortcut, "mm_in_python", noted)
    return calls


@pytest.fixture
def known(put: Put, long: Long) -> tuple[Any, Any, Any]:
    """Return tensors whose layout is known, with a result and without one."""
    a, b, out = put(random(8, 4)), put(random(4, 16)), put(np.zeros((8, 16), np.float32))
    for _ in range(3):
        tensorplay.mm(a, b, out=out)
        tensorplay.mm(a, b)
    long.clear()
    return a, b, out


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def close(found: Any, expected: Array) -> None:
    np.testing.assert_allclose(found.host, expected, rtol=1e-4, atol=1e-5)


def test_what_is_known_never_gets_to_python_again_whichever_tensors_it_is_of(
    known: tuple[Any, Any, Any], put: Put, long: Long, context: TuningContext, backend: Any
) -> None:
    before = context.stats()["replayed"]
    for seed in range(5):
        a, b, out = put(random(8, 4, seed=seed)), put(random(4, 16, seed=seed)), put(np.zeros((8, 16), np.float32))
        assert tensorplay.mm(a, b, out=out) is out
        close(out, a.host @ b.host)
        close(tensorplay.mm(a, b), a.host @ b.host)
    assert long == []
    assert context.stats()["replayed"] == before + 10
    assert len(torch_shortcut().mm) == 2


def test_the_stream_is_that_of_the_call(known: tuple[Any, Any, Any], torch: Any, backend: Any) -> None:
    a, b, out = known
    for stream in (0, 0x90, 2**47):
        torch.stream = stream
        tensorplay.mm(a, b, out=out)
        assert backend.launches[-1][2] == stream


def test_a_parameter_is_taken_where_no_gradient_is_recorded(
    known: tuple[Any, Any, Any], torch: Any, put: Put, long: Long
) -> None:
    a, b, out = known
    weight = torch.nn.Parameter(b.host)
    with torch.no_grad():
        close(tensorplay.mm(a, weight, out=out), a.host @ b.host)
    assert long == []
    for _ in range(2):
        with pytest.raises(OperandError, match=r"torch\.no_grad"):
            tensorplay.mm(a, weight, out=out)


def test_a_gradient_that_is_asked_for_later_is_seen(known: tuple[Any, Any, Any]) -> None:
    a, b, out = known
    for _ in range(4):
        tensorplay.mm(a, b, out=out)
    for tensor in known:
        tensor.requires_grad = True
        with pytest.raises(OperandError, match="requires grad"):
            tensorplay.mm(a, b, out=out)
        tensor.requires_grad = False
    assert tensorplay.mm(a, b, out=out) is out


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_lazily_negated_tensor_of_the_same_memory_goes_the_long_way(
    known: tuple[Any, Any, Any], torch: Any, long: Long, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    for _ in range(4):
        tensorplay.mm(*known[:2], out=known[2])
    tensors = list(known)
    tensors[which] = torch.Tensor(known[which].host)
    monkeypatch.setattr(torch.Tensor, "is_neg", lambda self: self is tensors[which])
    if which == 2:
        with pytest.raises(OperandError, match="lazily conjugated or negated"):
            tensorplay.mm(*tensors[:2], out=tensors[2])
    else:
        close(tensorplay.mm(*tensors[:2], out=tensors[2]), known[0].host @ known[1].host)
    assert long == [tuple(tensors)]
    # The others are known, and are not asked again.
    monkeypatch.setattr(torch.Tensor, "is_neg", lambda _: pytest.fail("this takes as long as all else"))
    tensorplay.mm(*known[:2], out=known[2])
    assert len(long) == 1


def test_no_tensor_is_kept_alive(known: tuple[Any, Any, Any], put: Put) -> None:
    a = put(random(8, 4))
    for _ in range(4):
        tensorplay.mm(a, *known[1:2], out=known[2])
    seen = weakref.ref(a)
    del a
    gc.collect()
    assert seen() is None
    tensorplay.mm(known[0], known[1], out=known[2])


def test_other_layouts_types_devices_and_kinds_of_tensors_go_the_long_way(
    known: tuple[Any, Any, Any], torch: Any, put: Put, long: Long
) -> None:
    a, b, out = known

    class Other(torch.Tensor):  # type: ignore[misc]  # a fake torch's
        pass

    wide = put(random(8, 8))
    unlike = [
        (put(random(9, 4)), b, put(np.zeros((9, 16), np.float32))),
        (torch.Tensor(wide.host[:, :4]), b, out),
        (torch.Tensor(put(random(4, 8)).host.T), b, out),
        (put(a.host.astype(np.float64)), put(b.host.astype(np.float64)), put(np.zeros((8, 16)))),
        (torch.Tensor(a.host, 1), torch.Tensor(b.host, 1), torch.Tensor(out.host, 1)),
        (a, Other(b.host), out),
        (torch.Tensor(a.host, -1), torch.Tensor(b.host, -1), torch.Tensor(out.host, -1)),
    ]
    for number, tensors in enumerate(unlike, 1):
        # Of the second device nothing is known here, and of the host nothing ever.
        close(tensorplay.mm(*tensors[:2], out=tensors[2]), tensors[0].host @ tensors[1].host)
        assert len(long) == number, f"number {number}"
    for bad in (None, 3, "text", a.host, [[1.0]]):
        with pytest.raises((OperandError, TypeError)):
            tensorplay.mm(a, bad, out=out)


def test_an_output_that_overlaps_goes_the_long_way_by_a_byte_and_no_more(
    known: tuple[Any, Any, Any], torch: Any, put: Put, long: Long
) -> None:
    _, b, _ = known
    memory = put(random(1, 512)).host.reshape(-1)
    a = torch.Tensor(memory[192:224].reshape(8, 4))
    # Operands of 32 and of 128 elements; the operand's begin at 192.
    for begin, overlaps in ((64, False), (68, True), (192, True), (220, True), (224, False)):
        memory[192:224] = random(32)
        out = torch.Tensor(memory[begin:][:128].reshape(8, 16))
        expected = a.host @ b.host
        close(tensorplay.mm(a, b, out=out), expected)
        assert len(long) == overlaps, f"the result begins at {begin}"
        long.clear()


def test_a_winner_that_fails_falls_back_and_is_not_run_again(
    known: tuple[Any, Any, Any], context: TuningContext, backend: Any
) -> None:
    a, b, out = known
    backend.broken = {backend.launches[-1][1]}
    out.host[...] = np.nan
    assert tensorplay.mm(a, b, out=out) is out
    close(out, a.host @ b.host)
    assert context.stats()["fallback"] == 1
    for _ in range(3):
        close(tensorplay.mm(a, b, out=out), a.host @ b.host)
    assert context.stats()["fallback"] == 1


def test_where_the_first_choice_fails_too_its_error_is_raised(known: tuple[Any, Any, Any], backend: Any) -> None:
    a, b, out = known
    backend.broken = {kernel for _, kernel, _ in backend.launches}
    backend.broken |= {plan.kernel for plan in backend.library_choices(backend.launches[-1][0])}
    for _ in range(2):
        with pytest.raises(Exception, match="fails by script") as caught:
            tensorplay.mm(a, b, out=out)
        assert type(caught.value).__module__ == "tensorplay.errors"


def test_what_interrupts_a_call_is_raised(known: tuple[Any, Any, Any], torch: Any, monkeypatch: Any) -> None:
    a, b, out = known
    for name, raised in (("is_grad_enabled", KeyboardInterrupt), ("precision", SystemExit)):

        def interrupted(*_: object, raised: type[BaseException] = raised) -> Any:
            raise raised

        with monkeypatch.context() as patch:
            patch.setattr(torch, "is_grad_enabled", interrupted)
            fresh = built.DirectProducts(  # type: ignore[union-attr]  # skipped where it is None
                exchange=torch.Tensor.__dlpack_c_exchange_api__,
                types=(torch.Tensor,),
                allows_tf32=interrupted if name == "precision" else lambda: False,
                grad_is_enabled=interrupted if name != "precision" else lambda: False,
                note_written=len,
                long_way=lambda *_: pytest.fail("it was not asked for"),
                launcher=None,
            )
            context = tensorplay.tunable.get_tuning_context()
            direct = next(each for each in context.plans.values() if hasattr(each, "left_bytes"))
            assert fresh.add(context.plans, direct, a, b, out)
            with pytest.raises(raised):
                fresh(context, a, b, out)


def test_each_change_of_what_calls_resolve_to_is_heeded(
    known: tuple[Any, Any, Any], long: Long, context: TuningContext
) -> None:
    a, b, out = known
    context.change_setting("numerical_check", "off")
    tensorplay.mm(a, b, out=out)
    assert len(long) == 1
    with use_context(TuningContext(environ={}, backends=context._backends)) as other:
        for _ in range(3):
            close(tensorplay.mm(a, b, out=out), a.host @ b.host)
        assert other.stats()["selected_in_process"] == 3
        other.close()
    close(tensorplay.mm(a, b, out=out), a.host @ b.host)


def test_more_layouts_than_there_is_room_for_are_all_right(put: Put, long: Long, context: TuningContext) -> None:
    context.tuning_disable()
    rows = range(1, 1500, 3)
    b = put(random(2, 2))
    # Those of numbers with the same bits would all have one home, if they were not mixed.
    for m in rows:
        a = put(random(m, 2))
        for _ in range(3):
            close(tensorplay.mm(a, b), a.host @ b.host)
    long.clear()
    products = torch_shortcut().mm
    assert 0 < len(products) <= 1024


def test_threads_that_multiply_while_settings_change_get_right_results(
    known: tuple[Any, Any, Any], put: Put, context: TuningContext
) -> None:
    a, b, _ = known
    expected = a.host @ b.host
    failures: list[BaseException] = []
    end = threading.Event()

    def work() -> None:
        out = put(np.zeros((8, 16), np.float32))
        try:
            while not end.is_set():
                out.host[...] = np.nan
                close(tensorplay.mm(a, b, out=out), expected)
                close(tensorplay.mm(a, b), expected)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(3)]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for turn in range(60):
            context.change_setting("numerical_check", "off" if turn % 2 else "on")
            gc.collect(0)
    finally:
        end.set()
        for thread in threads:
            thread.join(20)
        sys.setswitchinterval(switch)
    assert failures == []


def test_calls_leave_no_references_behind(known: tuple[Any, Any, Any], backend: Any) -> None:
    a, b, out = known
    for _ in range(4):
        tensorplay.mm(a, b, out=out)
    context = tensorplay.tunable.get_tuning_context()
    directs = [each for each in context.plans.values() if hasattr(each, "left_bytes")]
    assert len(directs) == 2
    of_directs = [getattr(each, name) for each in directs for name in ("check", "tf32", "tally", "launch", "shape")]
    watched = [a, b, out, None, context, context.plans, *directs, *of_directs]
    # What other tests have left must not be collected in between.
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(300):
        tensorplay.mm(a, b, out=out)
        tensorplay.mm(a, b)
    backend.launches.clear()
    gc.collect()
    after = [sys.getrefcount(each) for each in watched]
    assert [count - was for count, was in zip(after, before, strict=True) if abs(count - was) > 100] == []


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"exchange": object()}, ValueError),
        ({"types": ()}, ValueError),
        ({"types": (3,)}, ValueError),
        ({"launcher": object()}, ValueError),
    ],
)
def test_what_cannot_be_asked_is_not_made(torch: Any, changed: dict[str, Any], error: type[Exception]) -> None:
    given: dict[str, Any] = {
        "exchange": torch.Tensor.__dlpack_c_exchange_api__,
        "types": (torch.Tensor,),
        "allows_tf32": bool,
        "grad_is_enabled": bool,
        "note_written": len,
        "long_way": print,
        "launcher": None,
    }
    with pytest.raises(error):
        built.DirectProducts(**given | changed)  # type: ignore[union-attr]  # skipped where it is None
    products = built.DirectProducts(**given)  # type: ignore[union-attr]  # as above
    with pytest.raises(TypeError):
        products(1, 2, 3)
    with pytest.raises(TypeError):
        products.add(1, 2)
