import pytest

from tensorplay.backends.host.library import numpy_blas
from tensorplay.backends.host.private_blas import private_blas
from tensorplay.errors import KernelUnavailableError


@pytest.fixture
def own_blas() -> None:
    """Skip where NumPy's BLAS cannot be loaded a second time: another system, or another library."""
    try:
        private_blas(numpy_blas(), 1)
    except KernelUnavailableError as error:
        pytest.skip(str(error))
