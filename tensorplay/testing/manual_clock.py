"""A clock that stands still until a test moves it."""

__all__ = ["ManualClock"]


class ManualClock:
    """Seconds that go forward only when `advance` says so; fits wherever `time.monotonic` does.

    Parameters
    ----------
    now : float
        What the clock shows at first, in seconds.
    """

    __slots__ = ("_now",)

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def __call__(self) -> float:
        """Return now, in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward; `ValueError` for a negative step, which no real clock takes."""
        if not seconds >= 0.0:
            raise ValueError(f"a clock cannot advance by {seconds!r} seconds; allowed: seconds from 0 up")
        self._now += seconds
