"""The public namespace of the seed; `tunable` works with and without CUDA, arrays on a device need it."""

from typing import TYPE_CHECKING, Any

from tensorplay.cuda import tunable

if TYPE_CHECKING:
    from tensorplay.cuda.scaled import scaled_mm
    from tensorplay.ops.device.array import DeviceArray, asarray
    from tensorplay.ops.device.grouped import grouped_mm

__all__ = ["DeviceArray", "asarray", "grouped_mm", "scaled_mm", "tunable"]

_HOMES = {
    "DeviceArray": "ops.device.array",
    "asarray": "ops.device.array",
    "grouped_mm": "ops.device.grouped",
    "scaled_mm": "cuda.scaled",
}


def __getattr__(name: str) -> Any:
    """Import what needs arrays when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - nothing is imported before it is needed

    value = getattr(import_module(f"tensorplay.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
