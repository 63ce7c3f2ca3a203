"""Which packages that bring candidates or arrays are installed, found out once."""

from functools import cache
from importlib import metadata

__all__ = ["installed_packages"]

_PACKAGES = ("numpy", "scipy", "mkl", "ml_dtypes", "nvmath-python", "cuda-bindings", "torch", "cupy", "jax", "numba")


@cache
def installed_packages() -> dict[str, str]:
    """Return their versions; what is not installed is left out, and nothing is imported."""
    found = {name: _version(name) for name in _PACKAGES}
    return {name: version for name, version in found.items() if version is not None}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, KeyError, TypeError):
        # Half-removed packages leave metadata without a version behind.
        return None
