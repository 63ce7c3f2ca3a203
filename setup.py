"""Builds the extensions, where a compiler and the headers are; everything else is in pyproject.toml.

TENSORPLAY_EXTENSIONS=required makes a build fail that cannot build them all, for wheels and images that others use.
"""

import os

from setuptools import Extension, setup

optional = os.environ.get("TENSORPLAY_EXTENSIONS") != "required"

extensions = [
    Extension(
        "tensorplay.ops.device._direct",
        sources=["tensorplay/ops/device/_direct.c"],
        depends=[
            "tensorplay/backends/cublaslt/_launch.h",
            *(f"tensorplay/ops/device/_{name}.h" for name in ("entries", "exchange", "run", "table")),
        ],
        optional=optional,
    ),
    Extension(
        "tensorplay.backends.cublaslt._launch",
        sources=["tensorplay/backends/cublaslt/_launch.c"],
        depends=["tensorplay/backends/cublaslt/_launch.h"],
        optional=optional,
    ),
]
try:
    import numpy as np
except ImportError:
    if not optional:
        raise
    print("tensorplay.ops._layout_key is left out: NumPy is not installed where this is built")
else:
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        # What is built with these headers runs with NumPy 1 alone, what is built with later ones with both.
        told = f"tensorplay.ops._layout_key is left out: it is built with NumPy 2.0 or newer, not {np.__version__}"
        if not optional:
            raise SystemExit(told)
        print(told)
    else:
        extensions.append(
            Extension(
                "tensorplay.ops._layout_key",
                sources=["tensorplay/ops/_layout_key.c"],
                include_dirs=[np.get_include()],
                optional=optional,
            )
        )

setup(ext_modules=extensions)
