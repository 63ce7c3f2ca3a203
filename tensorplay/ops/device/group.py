"""Groups: what many products that are enqueued in one call have been resolved to.

Whatever is unusual is left to a loop of single products, which also says what is wrong. So is every group under a
graph capture, where no list of addresses could be written that outlives the call; and one that was captured runs in
a loop ever after, so that eager reruns have the bits of the graph's replays.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add, gt, or_

from tensorplay.backends.cublaslt.member import ALIGNMENT, EMPTY, Member
from tensorplay.errors import KernelUnavailableError, LaunchError, TensorPlayError
from tensorplay.ops.device.problem import named_dtype
from tensorplay.runtime.context import TuningContext
from tensorplay.runtime.notice import logger

__all__ = ["Group", "are_apart"]


class Group:
    """Products of certain sizes, ready to run on any arrays that lie so.

    Parameters
    ----------
    members : sequence of Member
        One for each product, `EMPTY` for those that have nothing to do.
    dtype : str
        Of the arrays, as they call it.
    run : callable or None
        Enqueues what is not empty: `run(lefts, rights, outs, stream=...)` with addresses. None for what is retired.
    is_capturing : callable
        Says whether a graph capture is live on a stream.

    Attributes
    ----------
    is_retired : bool
        Whether its products run one by one from now on.
    """

    __slots__ = ("_busy", "_count", "_is_capturing", "_lengths", "_run", "is_retired")

    def __init__(
        self,
        members: Sequence[Member],
        dtype: str,
        run: Callable[..., None] | None,
        is_capturing: Callable[[int], bool],
    ) -> None:
        self.is_retired = run is None
        self._run = run
        self._is_capturing = is_capturing
        self._count = len(members)
        busy = [place for place, member in enumerate(members) if member != EMPTY]
        self._busy = busy if len(busy) < len(members) else None
        item = named_dtype(dtype).itemsize
        lengths = [(0, 0, 0) if member == EMPTY else member.lengths for member in members]
        self._lengths = [item * length[which] for which in range(3) for length in lengths]

    def is_usable(self, pointers: tuple[int, ...]) -> bool:
        """Return whether arrays at these addresses are multiplied at once: aligned, and no result on anything else."""
        used: Iterable[int] = pointers
        if self._busy is not None:
            used = [pointer for pointer, length in zip(pointers, self._lengths, strict=False) if length]
        if reduce(or_, used) % ALIGNMENT or not all(used):
            return False
        inputs = 2 * self._count
        return len(pointers) == inputs or are_apart(pointers, self._lengths, inputs)

    def retires_on(self, stream: int) -> bool:
        """Return whether its products run one by one on a stream: under a capture, and ever after."""
        if not self.is_retired:
            try:
                self.is_retired = self._is_capturing(stream)
            except TensorPlayError:
                # A product says what is wrong with such a stream.
                return True
        return self.is_retired

    def enqueue(self, context: TuningContext, pointers: tuple[int, ...], stream: int) -> bool:
        """Enqueue all products; return whether that was done. Where not, they run one by one from now on."""
        count = self._count
        lefts, rights, outs = pointers[:count], pointers[count : 2 * count], pointers[2 * count :]
        if self._busy is not None:
            lefts, rights, outs = (tuple([each[place] for place in self._busy]) for each in (lefts, rights, outs))
        if self._run is None:
            return False
        try:
            self._run(lefts, rights, outs, stream=stream)
        except (KernelUnavailableError, LaunchError, MemoryError) as error:
            self.is_retired = True
            logger.warning("a group of %d products runs one by one: %s", count, error)
            return False
        # One product is counted already.
        context.fixed(self._run).tally.calls += count - 1
        return True


def are_apart(pointers: Sequence[int], lengths: Sequence[int], inputs: int) -> bool:
    """Return whether no array from number `inputs` on shares memory with any other; the first ones may.

    Each is taken to fill all its bytes from the first to the last; one of no bytes shares nothing.
    """
    read = set(zip(pointers[:inputs], lengths, strict=False))
    spans = sorted([*read, *zip(pointers[inputs:], lengths[inputs:], strict=True)])
    firsts, sizes = [first for first, _ in spans], [size for _, size in spans]
    # Mostly nothing shares anything, which takes a tenth of the time to see.
    if not any(map(gt, map(add, firsts, sizes), firsts[1:])):
        return True
    return _are_written_apart(pointers, lengths, inputs)


def _are_written_apart(pointers: Sequence[int], lengths: Sequence[int], inputs: int) -> bool:
    spans = sorted(
        (pointer, pointer + length, number >= inputs)
        for number, (pointer, length) in enumerate(zip(pointers, lengths, strict=True))
        if length
    )
    last = last_written = 0
    for first, end, is_written in spans:
        if first < (last if is_written else last_written):
            return False
        last = max(last, end)
        if is_written:
            last_written = max(last_written, end)
    return True
