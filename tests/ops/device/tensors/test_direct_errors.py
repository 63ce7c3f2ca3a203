"""Hits in C: what is raised where something fails, and what is refused."""

import sys
from collections import UserDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorplay as package
from tensorplay.errors import LaunchError
from tensorplay.extensions import extension
from tensorplay.ops.device.torch_direct import Direct
from tensorplay.runtime.context import TuningContext

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


def close(found: Any, expected: Array) -> None:
    np.testing.assert_allclose(found.host, expected, rtol=1e-4, atol=1e-5)


def passing(*_: object) -> Callable[..., bool]:
    """Make a check that passes."""
    return lambda *_: True


def made(torch: Any, **changed: Any) -> Any:
    """Return products in C of their own, made of other things where they are given."""
    given: dict[str, Any] = {
        "exchange": torch.Tensor.__dlpack_c_exchange_api__,
        "types": (torch.Tensor,),
        "allows_tf32": bool,
        "note_written": len,
        "long_way": lambda *_: pytest.fail("it was not asked for"),
        "launcher": None,
    }
    return built.DirectProducts(**given | changed)  # type: ignore[union-attr]  # skipped where it is None


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, ValueError])
@pytest.mark.parametrize("place", ["check", "tf32", "written"])
def test_what_interrupts_a_call_is_raised(
    known: tuple[Any, Any, Any], torch: Any, context: TuningContext, raised: type[BaseException], place: str
) -> None:
    a, b, out = known

    def interrupted(*_: object) -> Any:
        raise raised

    products = made(
        torch,
        allows_tf32=interrupted if place == "tf32" else lambda: False,
        note_written=interrupted if place == "written" else len,
    )
    direct = next(each for each in context.plans.values() if isinstance(each, Direct))
    check = interrupted if place == "check" else lambda *_: True
    assert products.add(context.plans, direct, lambda *_: check, a, b, out)
    with pytest.raises(raised):
        products(context, a, b, out)


def test_an_error_that_is_handled_further_out_is_not_left_in_a_generator_that_multiplies(
    known: tuple[Any, Any, Any], backend: Any
) -> None:
    a, b, out = known
    backend.broken = {backend.launches[-1][1]}

    def multiplying() -> Iterator[object]:
        tensorplay.mm(a, b, out=out)
        yield None
        yield sys.exc_info()[1]

    steps = multiplying()
    nothing: dict[str, int] = {}
    try:
        nothing["what whoever drives it handles"] += 1
    except KeyError:
        next(steps)
    assert next(steps) is None


def test_a_failed_winner_s_error_is_the_one_that_is_handled_while_the_first_choice_runs(
    known: tuple[Any, Any, Any], torch: Any, context: TuningContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, out = known
    handled: list[BaseException | None] = []
    error = LaunchError("this winner has failed")

    def launch(*_: object) -> None:
        raise error

    def recover(*_: object) -> None:
        handled.append(sys.exc_info()[1])
        raise ValueError("nor does the first choice")

    monkeypatch.setattr(context, "recover", recover)
    direct = next(each for each in context.plans.values() if isinstance(each, Direct))
    products = made(torch)
    assert products.add(context.plans, replace(direct, launch=launch, tf32=None), passing, a, b, out)
    with pytest.raises(ValueError, match="nor does the first choice") as caught:
        products(context, a, b, out)
    assert handled == [error]
    assert caught.value.__context__ is error
    assert sys.exc_info() == (None, None, None)


def test_a_count_that_is_no_number_in_a_slot_of_its_own_type_is_counted_as_python_does(
    known: tuple[Any, Any, Any], torch: Any, context: TuningContext
) -> None:
    class Other:
        __slots__ = ("calls",)

    class Foreign:
        calls = Other.__dict__["calls"]

    class Text:
        __slots__ = ("calls",)

        def __init__(self) -> None:
            self.calls = "3"

    a, b, out = known
    direct = next(each for each in context.plans.values() if isinstance(each, Direct))
    for tally in (Foreign(), Text(), object()):
        products = made(torch)
        odd: Any = tally
        assert products.add(context.plans, replace(direct, tally=odd, tf32=None), passing, a, b, out)
        with pytest.raises((TypeError, AttributeError)):
            products(context, a, b, out)


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
    with pytest.raises(error):
        made(torch, **changed)
    products = made(torch)
    with pytest.raises(TypeError):
        products(1, 2, 3)
    with pytest.raises(TypeError):
        products.add(1, 2)
    a, b = (torch.Tensor(random(4, 4)) for _ in range(2))
    for direct in (object(), SimpleNamespace(tf32=None, tally=1, launch=2, shape=3, left_bytes="4")):
        with pytest.raises((AttributeError, TypeError)):
            products.add({}, direct, passing, a, b, None)
    known = SimpleNamespace(tf32=None, tally=1, launch=2, shape=3, left_bytes=4, right_bytes=4, out_bytes=4)
    plans: Any
    for plans in (UserDict(), object(), None):
        assert not products.add(plans, known, passing, a, b, None)
    assert not products.add({}, known, passing, a, 3, None)
    assert products.add({}, known, passing, a, b, None)
