"""Builds the extensions, where a compiler and the headers are; everything else is in pyproject.toml."""

from setuptools import Extension, setup

extensions = [
    Extension(
        "tensorplay.ops.device._direct",
        sources=["tensorplay/ops/device/_direct.c"],
        depends=[
            "tensorplay/backends/cublaslt/_launch.h",
            *(f"tensorplay/ops/device/_{name}.h" for name in ("entries", "exchange", "run", "table")),
        ],
        optional=True,
    ),
    Extension(
        "tensorplay.backends.cublaslt._launch",
        sources=["tensorplay/backends/cublaslt/_launch.c"],
        depends=["tensorplay/backends/cublaslt/_launch.h"],
        optional=True,
    ),
]
try:
    import numpy as np
except ImportError:
    print("tensorplay.ops._layout_key is left out: NumPy is not installed where this is built")
else:
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        # What is built with these headers runs with NumPy 1 alone, what is built with later ones with both.
        print(f"tensorplay.ops._layout_key is left out: it is built with NumPy 2.0 or newer, not {np.__version__}")
    else:
        extensions.append(
            Extension(
                "tensorplay.ops._layout_key",
                sources=["tensorplay/ops/_layout_key.c"],
                include_dirs=[np.get_include()],
                optional=True,
            )
        )

setup(ext_modules=extensions)
