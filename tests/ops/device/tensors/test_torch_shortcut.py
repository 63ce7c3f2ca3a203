"""The hot path of tensors: what it takes, what it looks at in each call, and what it leaves to the long way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext

Array = NDArray[Any]
Put = Callable[..., Any]
# Here it is a fake device's arrays, whose type no checker knows.
tensorplay: Any = package
pytestmark = pytest.mark.usefixtures("context")


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def close(found: Any, expected: Array) -> None:
    assert type(found).__module__ == "torch"
    np.testing.assert_allclose(found.host, expected, rtol=1e-4, atol=1e-5)


def directs(context: TuningContext) -> int:
    return len({id(each) for each in context.plans.values() if isinstance(each, Direct)})


def test_the_second_call_of_such_tensors_takes_the_hot_path(
    torch: Any, put: Put, context: TuningContext, backend: Any
) -> None:
    a, b = random(8, 4), random(4, 16)
    left, right, out = put(a), put(b), put(np.zeros((8, 16), np.float32))
    for call in range(4):
        out.host[...] = np.nan
        assert tensorplay.mm(left, right, out=out) is out
        close(out, a @ b)
        close(tensorplay.mm(left, right), a @ b)
        assert directs(context) == (2 if call else directs(context))
    assert context.stats()["measured"] == 1
    assert context.stats()["replayed"] == 7
    # Until each of the two ways was known, calls went the long way.
    assert backend.short == 5
    torch.stream = 0x90
    tensorplay.mm(left, right, out=out)
    assert backend.launches[-1][2] == 0x90


def test_tensors_of_the_same_shapes_that_differ_otherwise_are_not_mixed_up(torch: Any, put: Put, backend: Any) -> None:
    square, other = random(8, 8), random(8, 8, seed=3)
    makes: list[Callable[[Array], Any]] = [
        put,
        lambda array: torch.Tensor(put(array.T.copy()).host.T),
        lambda array: put(array.astype(np.float64)),
        lambda array: torch.Tensor(put(np.hstack([array, array])).host[:, :8]),
    ]
    for _ in range(3):
        for make in makes:
            for second in makes:
                left, right = make(square), second(other)
                if left.dtype != right.dtype:
                    with pytest.raises(OperandError, match="converted in silence"):
                        tensorplay.mm(left, right)
                    continue
                close(tensorplay.mm(left, right), square @ other)
                close(tensorplay.mm(left, left), square @ square)
                out = put(np.zeros((8, 8), left.host.dtype))
                close(tensorplay.mm(left, right, out=out), square @ other)


def test_the_alignment_of_addresses_is_looked_at_in_each_call(torch: Any, put: Put, backend: Any) -> None:
    memory = put(random(80)).host
    right = put(random(8, 8))
    for offset in (0, 1, 2, 4, 0, 1):
        a = torch.Tensor(memory[offset : offset + 64].reshape(8, 8))
        for _ in range(2):
            close(tensorplay.mm(a, right), a.host @ right.host)
        assert backend.launches[-1][0].alignment == {0: 16, 1: 4, 2: 8, 4: 16}[offset]


def test_an_output_that_overlaps_an_operand_gets_the_right_result_on_the_hot_path_too(torch: Any, put: Put) -> None:
    a, b = random(8, 8), random(8, 8, seed=1)
    for _ in range(3):
        tensorplay.mm(put(a), put(b), out=put(a))
        left, right = put(a), put(b)
        close(tensorplay.mm(left, right, out=left), a @ b)
        left = put(a)
        close(tensorplay.mm(left, right, out=right), a @ b)
        both = put(random(16, 8)).host
        expected = both[:8] @ b
        tensorplay.mm(torch.Tensor(both[:8]), put(b), out=torch.Tensor(both[4:12]))
        np.testing.assert_allclose(both[4:12], expected, rtol=1e-4, atol=1e-5)


def test_tf32_is_allowed_and_forbidden_between_two_calls(torch: Any, put: Put, backend: Any) -> None:
    a = put(random(8, 8))
    for precision in ("none", "tf32", "tf32", "ieee", "ieee", "tf32"):
        torch.precision = precision
        tensorplay.mm(a, put(random(8, 8)))
        assert backend.launches[-1][0].dtype.name == ("tf32" if precision == "tf32" else "float32")


def test_where_the_quick_switch_of_tf32_cannot_tell_the_other_is_asked(torch: Any, put: Put, backend: Any) -> None:
    left, right, out = put(random(8, 8)), put(random(8, 8, seed=1)), put(np.zeros((8, 8), np.float32))
    state = {"precision": "none"}

    def older() -> bool:
        if torch.precision == "mixed":
            raise RuntimeError("mix of the legacy and new APIs")
        return bool(torch.precision == "tf32")

    torch._C._get_cublas_allow_tf32 = older
    torch._C._get_fp32_precision_getter = lambda *_: state["precision"]
    for precision, newer in (
        ("none", "none"),
        ("none", "none"),
        ("mixed", "tf32"),
        ("mixed", "none"),
        ("tf32", "tf32"),
    ):
        torch.precision, state["precision"] = precision, newer
        tensorplay.mm(left, right, out=out)
        assert backend.launches[-1][0].dtype.name == ("tf32" if newer == "tf32" else "float32")


def test_errors_are_the_same_once_the_hot_path_is_known(torch: Any, put: Put) -> None:
    a, b = put(random(8, 4)), put(random(4, 8))
    for _ in range(2):
        tensorplay.mm(a, b)
        with pytest.raises(ShapeError, match=r"\(8, 4\) and \(8, 4\)"):
            tensorplay.mm(a, a)
        with pytest.raises(ShapeError, match=r"out is \(4, 8\)"):
            tensorplay.mm(a, b, out=b)
        with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
            tensorplay.mm(a, torch.Tensor(b.host, 1))
        with pytest.raises(OperandError, match=r"numpy\.ndarray on the host"):
            tensorplay.mm(a, b.host)
        with pytest.raises(OperandError, match="list on the host"):
            tensorplay.mm(a, [[1.0]])


def test_a_winner_that_fails_on_the_hot_path_falls_back(
    torch: Any, put: Put, context: TuningContext, backend: Any
) -> None:
    a, b = put(random(8, 4)), put(random(4, 8))
    for _ in range(2):
        tensorplay.mm(a, b)
    backend.broken = {backend.launches[-1][1]}
    close(tensorplay.mm(a, b), a.host @ b.host)
    assert context.stats()["fallback"] == 1
    close(tensorplay.mm(a, b), a.host @ b.host)


def test_what_is_not_settled_is_decided_anew_under_a_capture(
    torch: Any, put: Put, context: TuningContext, backend: Any
) -> None:
    context.tuning_disable()
    a, b, weight = put(random(8, 4)), put(random(4, 8)), put(random(8, 4))
    for _ in range(3):
        close(tensorplay.mm(a, b), a.host @ b.host)
        close(tensorplay.linear(a, weight), a.host @ weight.host.T)
    assert context.stats()["pinned"] == 0
    backend.is_capture_live = True
    for _ in range(2):
        close(tensorplay.mm(a, b), a.host @ b.host)
        close(tensorplay.linear(a, weight), a.host @ weight.host.T)
    assert context.stats()["pinned"] == 2


def test_a_changed_setting_is_heeded_by_the_next_call(torch: Any, put: Put, context: TuningContext) -> None:
    a, b = put(random(8, 4)), put(random(4, 8))
    for _ in range(3):
        tensorplay.mm(a, b)
    context.disable()
    tensorplay.mm(a, b)
    assert context.stats()["selected_in_process"] == 1
