"""The build and device of this process, as the results files that it writes name them."""

from typing import NamedTuple

from tensorplay.backends import registry
from tensorplay.backends.base import Backend
from tensorplay.backends.host.mkl_kernels import has_mkl
from tensorplay.backends.host.scipy_kernels import has_scipy
from tensorplay.database.csv_text import FORMAT_VALIDATOR
from tensorplay.database.record import Validator, check_validators

__all__ = ["ThisBuild", "this_build"]

# Sources that are packages of their own. Those of a GPU come with what makes it a device at all.
_IS_HERE = {"scipy": has_scipy, "mkl": has_mkl}


class ThisBuild(NamedTuple):
    """The best device of this machine, who runs products on it, and what its files must match."""

    backend: Backend
    device: str
    validators: tuple[Validator, ...]

    @property
    def missing_sources(self) -> tuple[str, ...]:
        """Return the sources of the device that offer nothing here, since what they need is not installed."""
        return tuple(name for name in self.backend.sources if name in _IS_HERE and not _IS_HERE[name]())

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sources that can offer candidates here."""
        return tuple(name for name in self.backend.sources if name not in self.missing_sources)


def this_build() -> ThisBuild:
    """Return what products run on here unless told otherwise; touches no file."""
    backend = registry.default_backend()
    device = backend.current_device()
    return ThisBuild(backend, device, check_validators((FORMAT_VALIDATOR, *backend.validators(device))))
