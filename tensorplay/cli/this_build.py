"""The build and device of this process, as the results files that it writes name them."""

from typing import NamedTuple

from tensorplay.backends import registry
from tensorplay.backends.base import Backend
from tensorplay.database.csv_text import FORMAT_VALIDATOR
from tensorplay.database.record import Validator, check_validators

__all__ = ["ThisBuild", "this_build"]


class ThisBuild(NamedTuple):
    """The best device of this machine, who runs products on it, and what its files must match."""

    backend: Backend
    device: str
    validators: tuple[Validator, ...]


def this_build() -> ThisBuild:
    """Return what products run on here unless told otherwise; touches no file."""
    backend = registry.default_backend()
    device = backend.current_device()
    return ThisBuild(backend, device, check_validators((FORMAT_VALIDATOR, *backend.validators(device))))
