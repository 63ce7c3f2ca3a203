"""What `grouped_mm` refuses, before anything is enqueued in one call."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplay.cuda import grouped_mm
from tensorplay.errors import OperandError, ShapeError
from tensorplay.ops.device import groups as groups_module

Array = NDArray[Any]
Put = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("context")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch, backend: Any) -> Iterator[list[int]]:
    """Return the number of products of each call; it computes nothing."""
    calls: list[int] = []

    def run(lefts: tuple[int, ...], *_: object, stream: int) -> None:
        calls.append(len(lefts))

    monkeypatch.setattr(backend, "name", "cublaslt")
    monkeypatch.setattr(groups_module, "grouped_call", lambda *_: SimpleNamespace(run=run))
    groups_module.groups.cache_clear()
    yield calls
    groups_module.groups.cache_clear()


@pytest.fixture
def put(cupy: Put, aligned: Callable[..., Array]) -> Put:
    """Return what puts an array on the fake device, as aligned as an allocator does."""

    def moved(host: Array) -> Any:
        made = aligned(host.shape, host.dtype)
        made[...] = host
        return cupy(made)

    return moved


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def pairs(put: Put) -> tuple[list[Any], list[Any]]:
    return [put(random(3, 8)) for _ in range(5)], [put(random(8, 4)) for _ in range(5)]


def test_what_fits_goes_at_once(put: Put, at_once: list[int]) -> None:
    grouped_mm(*pairs(put))
    assert at_once == [5]


def test_lists_that_differ_in_length(put: Put, at_once: list[int]) -> None:
    left, right = pairs(put)
    with pytest.raises(ShapeError, match="given: 5 and 4"):
        grouped_mm(left, right[1:])
    assert at_once == []


@pytest.mark.parametrize("place", [0, 3])
def test_pairs_that_do_not_fit(put: Put, at_once: list[int], place: int) -> None:
    left, right = pairs(put)
    left[place] = put(random(3, 9))
    with pytest.raises(ShapeError, match="9"):
        grouped_mm(left, right)
    assert at_once == []


@pytest.mark.parametrize("place", [0, 3])
def test_host_and_device_mixed(put: Put, at_once: list[int], place: int) -> None:
    left, right = pairs(put)
    right[place] = right[place].host
    with pytest.raises(OperandError, match="on the host"):
        grouped_mm(left, right)


def test_devices_mixed(put: Put, at_once: list[int], cupy: Put) -> None:
    left, right = pairs(put)
    right[2] = cupy(right[2].host, 1)
    with pytest.raises(OperandError, match=r"devices \[0, 1\]"):
        grouped_mm(left, right)


def test_types_mixed(put: Put, at_once: list[int]) -> None:
    left, right = pairs(put)
    right[2] = put(right[2].host.astype(np.float64))
    with pytest.raises(OperandError, match="float32 and float64"):
        grouped_mm(left, right)
