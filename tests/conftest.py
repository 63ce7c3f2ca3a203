"""What every test keeps to: no internal error that the runtime swallowed, no setting from outside."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_went_wrong_in_silence(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail the test when the runtime logged an error: it swallows its own faults, and tests must see them."""
    yield
    faults = [record for record in caplog.get_records("call") if record.module == "context" and record.exc_info]
    assert not faults, f"the runtime swallowed {faults[0].exc_info}"


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no variable of the machine that runs the tests decide what they see."""
    for name in [name for name in os.environ if name.startswith("TP_TUNABLEOP_")]:
        monkeypatch.delenv(name)
