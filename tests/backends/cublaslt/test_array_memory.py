"""Memory of arrays, on a driver whose memory is the host's: touching it after it was given back faults."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("way", ["with cuda.core", "without cuda.core"])
def test_arrays_live_as_long_as_they_are_used(way: str, run_on_stand_in: Callable[..., None]) -> None:
    run_on_stand_in("arrays.py", way)
