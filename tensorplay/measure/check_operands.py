"""What numbers products are checked on: such that whoever leaves out or doubles a part of one is found out.

A kernel that mishandles the end of its sums, by a tile, by a vector, or by one, errs by a few products of many: among
random numbers that is less than a long sum in 16 bits may be off. So the ends of long sums are heavy. All numbers are
uniform in [-1, 1], but the last factors of each sum are 8 in size, and of the first ones the left are 8 and the
right 7, with signs such that their product is of the other sign than the last. So each sum ends with 64, begins with
-56, or both the other way round, and has a result of the size of a plain one. Whoever drops the last products, up to
a few dozen, is off by about 64 in each element, at the beginning by 56, and at both ends by 8.

Sums shorter than `LONG` have factors from 1/2 to 1 in the end: one of so few products shows as it is.

Addends, which are the bias and what beta multiplies, are larger than what rounding can hide, and never near zero.

Where a kernel takes alpha and beta, it multiplies twice: with the plain 1 and 1 or 0, and with `ALPHA` and `BETA`,
which are neither 1 nor 0 nor equal. They are negative, and the bias is turned round with them: what an activation
hides of a sum the first time, it shows of the negative the second time. Where there are a bias and a C, a ReLU hides
one element in a hundred both times, since alpha and beta differ: of a result that has no other, nothing is found out.

The heavy sizes are exact in every type, so that TF32 and FP8 do not round them.
"""

from typing import NamedTuple

__all__ = ["ALPHA", "BETA", "LONG", "CheckNumbers", "Sizes", "check_numbers"]

ALPHA, BETA = -0.75, -1.25

LONG = 16
"""The length from which sums have heavy ends."""


class Sizes(NamedTuple):
    """From and to which size numbers are uniform; each has a random sign, which negative sizes turn round."""

    low: float
    high: float


class CheckNumbers(NamedTuple):
    """The sizes of what is not uniform in [-1, 1].

    Attributes
    ----------
    last : Sizes
        The last factors of each sum, left and right, and the first left ones where `first` is given. These have the
        same signs in a row of the left operand, and but for the sign of `first` in a column of the right one.
    first : Sizes or None
        The first right factors; None where they are like all others.
    addend : Sizes
        The bias, and what beta multiplies.
    """

    last: Sizes
    first: Sizes | None
    addend: Sizes


_OF_LONG = CheckNumbers(last=Sizes(8.0, 8.0), first=Sizes(-7.0, -7.0), addend=Sizes(16.0, 32.0))
_OF_SHORT = CheckNumbers(last=Sizes(0.5, 1.0), first=None, addend=Sizes(1.0, 2.0))


def check_numbers(k: int) -> CheckNumbers:
    """Return the sizes for sums of `k` products."""
    return _OF_LONG if k >= LONG else _OF_SHORT
