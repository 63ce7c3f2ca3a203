"""The kernel that writes lists of addresses, which needs a device to run and none to be compiled."""

import pytest

from tensorplay.backends.cublaslt.compiler import compile_source
from tensorplay.backends.cublaslt.pointer_arrays import SOURCE
from tensorplay.errors import KernelUnavailableError, LaunchError


@pytest.mark.parametrize("capability", [(9, 0), (8, 0)])
def test_it_compiles(capability: tuple[int, int]) -> None:
    try:
        code = compile_source(SOURCE, capability)
    except KernelUnavailableError as error:
        pytest.skip(str(error))
    except LaunchError as error:
        if "cannot be loaded" not in str(error):
            raise
        pytest.skip(str(error))
    assert code.startswith(b"\x7fELF")
