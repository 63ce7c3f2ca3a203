"""A key stands for one request and its answer, for a while."""

import pytest

from tensorplay.service.idempotency import KEPT_S, IdempotencyKeys
from tensorplay.service.problems import Problem


def test_an_answer_is_given_again_until_it_is_forgotten() -> None:
    now = [0.0]
    keys = IdempotencyKeys(clock=lambda: now[0])
    assert keys.begin("a", 1) is None
    with pytest.raises(Problem) as busy:
        keys.begin("a", 1)
    assert (busy.value.status, busy.value.code) == (409, "in-flight")
    keys.end("a", "answer")
    assert keys.begin("a", 1) == "answer"
    with pytest.raises(Problem) as reused:
        keys.begin("a", 2)
    assert (reused.value.status, reused.value.code) == (422, "key-reused")
    now[0] = KEPT_S
    assert keys.begin("a", 2) is None


def test_what_was_refused_may_be_sent_again_and_no_key_is_no_matter() -> None:
    keys = IdempotencyKeys()
    assert keys.begin("a", 1) is None
    keys.end("a", None)
    assert keys.begin("a", 2) is None
    assert keys.begin(None, 1) is keys.begin("", 1) is None
    keys.end(None, "answer")


def test_what_is_still_being_done_is_not_forgotten_for_others_or_by_time() -> None:
    now = [0.0]
    keys = IdempotencyKeys(clock=lambda: now[0])
    assert keys.begin("slow", 1) is None
    for number in range(2000):
        assert keys.begin(str(number), number) is None
        keys.end(str(number), "answer")
    now[0] = 2 * KEPT_S
    with pytest.raises(Problem, match="still being done"):
        keys.begin("slow", 1)
    keys.end("slow", "answer")
    assert keys.begin("other", 1) is None
    assert keys.begin("slow", 2) is None


def test_keys_are_bounded() -> None:
    keys = IdempotencyKeys()
    for number in range(1500):
        keys.begin(str(number), number)
        keys.end(str(number), number + 1)
    assert keys.begin("0", "anything") is None
    assert keys.begin("1499", 1499) == 1500
