"""Steps from one host kernel to others that differ in one thing: a thread count, the size of a block, a copy."""

from collections.abc import Iterator

from tensorplay.backends.host.offers import is_worth_trying, thread_counts
from tensorplay.errors import KernelIdError
from tensorplay.gemm import GemmProblem, HostKernelId

__all__ = ["steps"]

_WAYS = ("dot", "outer", "threads")
_BLOCKS = ("rows", "cols")
_SWITCHES = ("swap", "packa", "packb")
_FIRST_BLOCKS = (256, 64, 1024)
# Sizes around one: twice and half of it, and those between.
_FACTORS = ((2, 1), (1, 2), (3, 2), (3, 4))

_Options = tuple[tuple[str, int], ...]


def steps(kernel: HostKernelId, problem: GemmProblem) -> Iterator[HostKernelId]:
    """Yield kernels of the same source, each once; the caller passes over what is not available here."""
    seen = {kernel}
    for options in (*_other_sizes(kernel.options), *_other_ways(kernel), *_other_wrappings(kernel.options)):
        try:
            step = HostKernelId(kernel.source, options)
        except KernelIdError:
            continue
        if step not in seen and is_worth_trying(step, problem):
            seen.add(step)
            yield step


def _other_sizes(options: _Options) -> Iterator[_Options]:
    for place, (name, value) in enumerate(options):
        if name in _BLOCKS:
            for up, down in _FACTORS:
                if (size := value * up // down) > 0:
                    yield (*options[:place], (name, size), *options[place + 1 :])


def _other_ways(kernel: HostKernelId) -> Iterator[_Options]:
    """Yield other ways to multiply what is left when all wrappings are done."""
    has_way = bool(kernel.options) and kernel.options[0][0] in _WAYS
    wrappings = kernel.options[1:] if has_way else kernel.options
    for count in thread_counts(is_search=True):
        yield (("threads", count), *wrappings)
    if kernel.source == "numpy":
        yield (("dot", 1), *wrappings)
        yield wrappings


def _other_wrappings(options: _Options) -> Iterator[_Options]:
    names = {name for name, _ in options}
    for switch in _SWITCHES:
        if switch in names:
            yield tuple(option for option in options if option[0] != switch)
        else:
            yield (*options, (switch, 1))
    for block in _BLOCKS:
        if block in names:
            yield tuple(option for option in options if option[0] != block)
        else:
            yield from ((*options, (block, size)) for size in _FIRST_BLOCKS)
