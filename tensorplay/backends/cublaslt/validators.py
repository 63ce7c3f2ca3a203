"""What a winner depends on: the model of the device, and which build of the library is loaded."""

from functools import cache

from tensorplay.backends.cublaslt.device import device
from tensorplay.backends.cublaslt.library import library_identity, library_version
from tensorplay.database.record import Validator

__all__ = ["device_validators"]


@cache
def device_validators(ordinal: int) -> tuple[Validator, ...]:
    """Return the facts about a device and the loaded library; asked for once."""
    here = device(ordinal)
    return (
        Validator("CUDA_DEVICE", f"{here.capability[0]}.{here.capability[1]}:{here.name}"),
        Validator("CUBLASLT_VERSION", library_version()),
        Validator("CUBLASLT_LIBRARY", library_identity()),
    )
