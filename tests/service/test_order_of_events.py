"""Events of several threads are told in the order of their numbers."""

import threading

from tensorplay.runtime.context import TuningContext
from tensorplay.service.live_runtime import Happening, LiveRuntime


def test_no_event_of_another_thread_is_told_before_an_earlier_one(context: TuningContext) -> None:
    runtime, told = LiveRuntime(context), list[int]()
    other = threading.Thread(target=lambda: runtime.touch("jobs", number=2))

    def be_slow(happening: Happening, _kinds: tuple[str, ...]) -> None:
        if not told and not other.ident:
            other.start()
            other.join(0.1)

    runtime.subscribe(be_slow)
    runtime.subscribe(lambda happening, _kinds: told.append(happening.number))
    runtime.touch("jobs", number=1)
    other.join()
    assert told == sorted(told)
    assert len(told) == 2
    runtime.close()
