"""The kernels of our own that trials need: compiled side by side, before they are asked for one after another."""

from tensorplay.backends.cublaslt import closeness, fill, spin
from tensorplay.backends.cublaslt.compiling import at_once, begin_compiling
from tensorplay.gemm import DType

__all__ = ["begin_compiling_for"]

# What is tuned by default, and so may be asked for next.
_LATER = ("float32", "float64", "float16", "bfloat16")
_begun: set[tuple[str, tuple[int, int]]] = set()


def begin_compiling_for(dtype: DType, capability: tuple[int, int]) -> None:
    """Let trials of a data type find their kernels compiled, or nearly so; waits for nothing, and does it once.

    Each takes a tenth of a second, once for a machine. Where there are processors for them, those of other data types
    are begun as well.
    """
    names = dict.fromkeys((fill.real_name(dtype), *(_LATER if at_once() > 1 else ())))
    sources = [closeness.SOURCE, spin.SOURCE, *(fill.SOURCES[name] for name in names)]
    new = [source for source in sources if (source, capability) not in _begun]
    if new:
        _begun.update((source, capability) for source in new)
        begin_compiling(new, capability)
