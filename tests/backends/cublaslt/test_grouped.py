"""Grouped calls on libraries that compute on the host: values, lists of addresses, refusals."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("script", ["groups.py", "group_interruptions.py"])
def test_it_is_right_on_the_stand_in(script: str, run_on_stand_in: Callable[..., None]) -> None:
    run_on_stand_in(script)
