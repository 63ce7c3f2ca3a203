"""Whether kernels may be timed in captured graphs: only where no other thread could wait for the device."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tensorplay.backends.cublaslt.timer import _is_alone


@contextmanager
def beside(name: str) -> Iterator[None]:
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait, name=name)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_a_thread_of_the_program_is_company_and_one_of_ours_is_not() -> None:
    others = [each for each in threading.enumerate() if each is not threading.current_thread()]
    before = _is_alone()
    # One of an earlier test may end meanwhile, and then it is alone after all.
    assert before or [each for each in others if not each.name.startswith("tensorplay")]
    with beside("loader"):
        assert not _is_alone()
    with beside("tensorplay-service"):
        assert _is_alone() or not before


def test_on_a_thread_of_ours_the_main_thread_is_company() -> None:
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(_is_alone()), name="tensorplay-background")
    thread.start()
    thread.join()
    assert answers == [False]
