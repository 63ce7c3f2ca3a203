"""Rejections are remembered once, and counted whenever they are met."""

import pytest

from tensorplay.gemm import Signature
from tensorplay.runtime import rejections as rejection_lists
from tensorplay.runtime.rejections import Rejections

OP = "GemmTunableOp_Float32"


def test_meetings_are_counted_by_the_clock_that_is_given() -> None:
    times = iter([1.0, 2.0, 5.0])
    rejections = Rejections(lambda: next(times))
    signature = Signature(OP, "taN_m4_n3_k5_bias0_dev0")
    assert rejections.meetings(signature, "kernel") is None
    assert [rejections.add(signature, "kernel", "why") for _ in range(3)] == [True, False, False]
    assert rejections.meetings(signature, "kernel") == (3, 1.0, 5.0)
    rejections.clear()
    assert rejections.meetings(signature, "kernel") is None


def test_beyond_the_bound_none_is_listed_or_counted_and_known_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_lists, "MOST_REJECTIONS", 2)
    rejections = Rejections(lambda: 1.0)
    signatures = [Signature(OP, f"taN_m{m}_n3_k5_bias0_dev0") for m in range(1, 5)]
    assert [rejections.add(each, "kernel", "why") for each in signatures] == [True, True, False, False]
    assert [each.params for each in rejections.listed()] == [each.params for each in signatures[:2]]
    assert rejections.meetings(signatures[3], "kernel") is None
    rejections.heal(signatures[0], "kernel", winner="other")
    assert rejections.add(signatures[0], "kernel", "again")
    rejections.add(signatures[0], "kernel", "again")
    assert rejections.meetings(signatures[0], "kernel") == (3, 1.0, 1.0)
    assert rejections.clear() == 2
    assert rejections.add(signatures[3], "kernel", "why")


def test_of_kernels_that_failed_those_of_the_newest_signatures_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_lists, "MOST_REJECTIONS", 2)
    rejections = Rejections()
    signatures = [Signature(OP, f"taN_m{m}_n3_k5_bias0_dev0") for m in range(1, 4)]
    for each in signatures:
        rejections.fail(each, "one")
        rejections.fail(each, "other")
    assert [rejections.failed(each) for each in signatures] == [set(), {"one", "other"}, {"one", "other"}]
    rejections.forgive(signatures[2], "one")
    rejections.forgive(signatures[0], "one")
    assert rejections.failed(signatures[2]) == {"other"}
