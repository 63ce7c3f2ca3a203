"""What every test keeps to: no internal error that the runtime swallowed, no setting from outside."""

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

_NOT_TESTED = re.compile(r"(?<=Skipped: )[^\"']* NOT tested[^\"']*")


def pytest_configure(config: pytest.Config) -> None:
    """Let no library assert how long something takes: that is the machine's affair."""
    if config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import settings

        settings.register_profile("tests", deadline=None)
        settings.load_profile("tests")
    _be_patient()


def _be_patient() -> None:
    """Let a client wait longer than httpx's five seconds: other tests, and other programs, use the processor too."""
    try:
        from httpx import _config
    except ImportError:
        return
    # It is the default value of a parameter of every function there, and no other way to change that is offered.
    limits = _config.DEFAULT_TIMEOUT_CONFIG
    limits.connect = limits.read = limits.write = limits.pool = 60.0


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly, below everything else, what was skipped as not tested at all."""
    # Here, and not beside those tests: with several workers, who reports reads this file only.
    skipped = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    for message in sorted({found[0] for text in skipped if (found := _NOT_TESTED.search(text))}):
        terminalreporter.write_line(f"\n*** {message} ***", yellow=True, bold=True)


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
