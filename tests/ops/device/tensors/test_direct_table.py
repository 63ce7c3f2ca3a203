"""What hits in C keep: as long as the plans it is of, no tensor, and right for any number of threads and contexts."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.extensions import extension
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.plans import TABLE
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


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def known_layouts(context: TuningContext) -> int:
    """Return how many layouts the table in C has."""
    table: Any = context.plans[TABLE]
    return len(table)


def close(found: Any, expected: Array) -> None:
    np.testing.assert_allclose(found.host, expected, rtol=1e-4, atol=1e-5)


def test_no_tensor_is_kept_alive(known: tuple[Any, Any, Any], put: Put) -> None:
    a = put(random(8, 4))
    for _ in range(4):
        tensorplay.mm(a, *known[1:2], out=known[2])
    seen = weakref.ref(a)
    del a
    gc.collect()
    assert seen() is None
    tensorplay.mm(known[0], known[1], out=known[2])


def test_what_plans_hold_goes_with_them(known: tuple[Any, Any, Any], context: TuningContext) -> None:
    a, b, out = known
    checks = [weakref.ref(each.check) for each in context.plans.values() if isinstance(each, Direct)]
    assert len(checks) == 2
    context.change_setting("numerical_check", "off")
    gc.collect()
    assert [check() for check in checks] == [None, None]
    close(tensorplay.mm(a, b, out=out), a.host @ b.host)


def test_contexts_that_take_turns_keep_what_each_knows(known: tuple[Any, Any, Any], long: Long, backend: Any) -> None:
    a, b, out = known
    other = TuningContext(environ={}, backends={"0": backend})
    for _ in range(4):
        with use_context(other):
            tensorplay.mm(a, b, out=out)
    long.clear()
    for _ in range(3):
        tensorplay.mm(a, b, out=out)
        with use_context(other):
            tensorplay.mm(a, b, out=out)
    assert long == []
    other.close()


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


def test_tensors_of_one_layout_that_differ_otherwise_are_all_known(
    known: tuple[Any, Any, Any], torch: Any, put: Put, long: Long
) -> None:
    a, b, out = known
    trained = put(b.host)
    trained.requires_grad = True
    kinds = [(a, b), (a, trained), (a, torch.nn.Parameter(b.host))]
    with torch.no_grad():
        for _ in range(3):
            for left, right in kinds:
                tensorplay.mm(left, right, out=out)
                tensorplay.mm(left, right)
        long.clear()
        for left, right in kinds * 3:
            close(tensorplay.mm(left, right, out=out), a.host @ b.host)
            close(tensorplay.mm(left, right), a.host @ b.host)
    assert long == []


def test_more_kinds_of_one_layout_than_there_is_room_for_go_the_long_way(torch: Any) -> None:
    made: list[int] = []
    products = built.DirectProducts(  # type: ignore[union-attr]  # skipped where it is None
        exchange=torch.Tensor.__dlpack_c_exchange_api__,
        types=(torch.Tensor,),
        allows_tf32=bool,
        note_written=len,
        long_way=lambda *_: "long",
        launcher=None,
    )
    plans: dict[Any, Any] = {}
    ran: list[int] = []
    context = SimpleNamespace(plans=plans)
    tensors = [(torch.Tensor(random(4, 4)), torch.Tensor(random(4, 4)), torch.Tensor(random(4, 4))) for _ in range(20)]

    def added(number: int) -> bool:
        direct = SimpleNamespace(
            tf32=None, tally=SimpleNamespace(calls=0), launch=lambda *_: ran.append(number), shape=(4, 4),
            left_bytes=64, right_bytes=64, out_bytes=64,
        )  # fmt: skip

        def make_check(*given: Any) -> Callable[..., bool]:
            made.append(number)
            return lambda *later: later == given

        return bool(products.add(plans, direct, make_check, *tensors[number]))

    assert [added(number) for number in range(20)] == [True] * 8 + [False] * 12
    # A check takes long to make, and is not made in vain.
    assert made == list(range(8))
    assert added(3)
    assert len(plans[TABLE]) == 8
    found = [products(context, *given) for given in tensors]
    assert ran == list(range(8))
    assert found[8:] == ["long"] * 12


def test_any_number_of_layouts_is_known(put: Put, long: Long, context: TuningContext) -> None:
    context.tuning_disable()
    rows = range(1, 1500, 3)
    b = put(random(2, 2))
    # Those of numbers with the same bits would all have one home, if they were not mixed.
    for m in rows:
        a = put(random(m, 2))
        for _ in range(3):
            close(tensorplay.mm(a, b), a.host @ b.host)
    long.clear()
    assert known_layouts(context) == len(rows)


def test_threads_with_contexts_of_their_own_never_run_each_other_s_plans(torch: Any) -> None:
    class Owner:
        def __del__(self) -> None:
            # Where the interpreter may switch threads, in the middle of a table's end.
            sum(range(3))

    class Context:
        plans: Any

    def ran(owner: str) -> Callable[..., None]:
        return lambda *_: taken.append(owner)

    def direct(owner: str, a: Any, out: Any) -> Any:
        return SimpleNamespace(
            check=lambda *_: True, tf32=None, tally=SimpleNamespace(calls=0), launch=ran(owner), shape=out.shape,
            left_bytes=a.host.nbytes, right_bytes=0, out_bytes=out.host.nbytes, owner=Owner(),
        )  # fmt: skip

    taken: list[str] = []
    wrong: list[str] = []
    products = built.DirectProducts(  # type: ignore[union-attr]  # skipped where it is None
        exchange=torch.Tensor.__dlpack_c_exchange_api__,
        types=(torch.Tensor,),
        allows_tf32=bool,
        note_written=len,
        long_way=lambda *_: "long",
        launcher=None,
    )
    b = torch.Tensor(random(4, 16))
    shapes = {"one": 8, "other": 12}
    end = threading.Event()

    def work(me: str) -> None:
        tensors = {name: (torch.Tensor(random(m, 4)), b, torch.Tensor(random(m, 16))) for name, m in shapes.items()}
        while not end.is_set():
            context = Context()
            context.plans = {place: Owner() for place in range(20)}
            a, _, out = tensors[me]
            assert products.add(context.plans, direct(me, a, out), lambda *_: lambda *_: True, a, b, out)
            for name, given in tensors.items():
                if (products(context, *given) == "long") != (name != me):
                    wrong.append(f"{me} of {name}")

    threads = [threading.Thread(target=work, args=(name,)) for name in shapes]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        end.wait(1.0)
    finally:
        end.set()
        for thread in threads:
            thread.join(20)
        sys.setswitchinterval(switch)
    assert wrong == []
    assert set(taken) == set(shapes)


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
