"""Hits in C: which calls they take, what they look at in each, and what they keep."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError
from tensorplay.extensions import extension
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.plans import TABLE

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
    assert known_layouts(context) == 2


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
        for _ in range(3):
            close(tensorplay.mm(a, weight, out=out), a.host @ b.host)
        # It is a layout of its own, so the one before is still known.
        long.clear()
        for right in (weight, b, weight, b):
            close(tensorplay.mm(a, right, out=out), a.host @ b.host)
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
    # A tensor may become one where it lies: its data may be set to a lazy view of the same memory.
    monkeypatch.setattr(torch.Tensor, "is_neg", lambda self: self is known[which])
    if which == 2:
        with pytest.raises(OperandError, match="lazily conjugated or negated"):
            tensorplay.mm(*known[:2], out=known[2])
    else:
        tensorplay.mm(*known[:2], out=known[2])
    assert long == [known]
    monkeypatch.setattr(torch.Tensor, "is_neg", lambda _: False)
    tensorplay.mm(*known[:2], out=known[2])
    assert len(long) == 1


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
