"""Kernels of our own compile for every GPU that they are meant for; the compiler needs no device."""

import pytest

from tensorplay.backends.cublaslt import closeness, epilogue, fill, gemv_source, spin
from tensorplay.errors import KernelUnavailableError, LaunchError

SOURCES = {
    "spin": spin.SOURCE,
    "closeness": closeness.SOURCE,
    **{f"fill {name}": source for name, source in fill.SOURCES.items()},
    **{f"epilogue {name}": source for name, source in epilogue.SOURCES.items()},
    **{f"gemv {name}": source for name, source in gemv_source.SOURCES.items()},
}


def compiled(source: str, capability: tuple[int, int]) -> bytes:
    from tensorplay.backends.cublaslt.compiler import compile_source

    try:
        return compile_source(source, capability)
    except KernelUnavailableError as error:
        pytest.skip(str(error))
    except LaunchError as error:
        if "cannot be loaded" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("name", SOURCES)
def test_it_compiles_for_hopper(name: str) -> None:
    assert compiled(SOURCES[name], (9, 0)).startswith(b"\x7fELF")


@pytest.mark.parametrize("name", [name for name in SOURCES if "float8" not in name])
def test_what_needs_no_fp8_compiles_for_ampere(name: str) -> None:
    assert compiled(SOURCES[name], (8, 0)).startswith(b"\x7fELF")


def test_a_kernel_that_does_not_compile_says_why() -> None:
    compiled(spin.SOURCE, (9, 0))
    with pytest.raises(LaunchError, match="undefined"):
        compiled("__global__ void broken() { undefined(); }", (9, 0))
