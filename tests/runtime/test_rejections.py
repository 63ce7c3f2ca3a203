"""Rejections are remembered once, and counted whenever they are met."""

from tensorplay.gemm import Signature
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
