"""TensorPlay measures the kernels of each matrix product once, records the winner, and replays it ever after.

The products are `mm`, `addmm`, `linear`, `bmm` and `matmul`; `tensorplay.tunable` (the same functions as
`tensorplay.cuda.tunable`) turns tuning on and off, bounds it, and shows what it found.
"""

from typing import TYPE_CHECKING

from tensorplay.locks import imported
from tensorplay.runtime.first_context import on_first_context
from tensorplay.version import __version__

if TYPE_CHECKING:
    from tensorplay import cuda, service, tunable
    from tensorplay.ops import addmm, bmm, linear, matmul, mm

__all__ = ["__version__", "addmm", "bmm", "cuda", "linear", "matmul", "mm", "service", "tunable"]

_PRODUCTS = frozenset({"addmm", "bmm", "linear", "matmul", "mm"})
_SUBMODULES = frozenset({"cuda", "errors", "gemm", "service", "testing", "tunable"})


def __getattr__(name: str) -> object:
    """Import what is asked for, once: `import tensorplay` alone costs no more than it must."""
    if name in _PRODUCTS:
        value = getattr(imported("tensorplay.ops"), name)
    elif name in _SUBMODULES:
        value = imported(f"tensorplay.{name}")
    else:
        raise AttributeError(f"module 'tensorplay' has no attribute {name!r}")
    globals()[name] = value
    return value


def _serve_dashboard(address: str) -> None:
    """Start the service where the environment asks for it; nothing of it is imported otherwise."""
    imported("tensorplay.service.autostart").serve_dashboard(address)


on_first_context(_serve_dashboard)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
