"""Builds the one extension, where a compiler and NumPy's headers are; everything else is in pyproject.toml."""

from setuptools import Extension, setup

extensions = []
try:
    import numpy as np
except ImportError:
    print("tensorplay.ops._layout_key is left out: NumPy is not installed where this is built")
else:
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        # What is built with these headers runs with NumPy 1 alone, what is built with later ones with both.
        print(f"tensorplay.ops._layout_key is left out: it is built with NumPy 2.0 or newer, not {np.__version__}")
    else:
        extensions = [
            Extension(
                "tensorplay.ops._layout_key",
                sources=["tensorplay/ops/_layout_key.c"],
                include_dirs=[np.get_include()],
                optional=True,
            )
        ]

setup(ext_modules=extensions)
