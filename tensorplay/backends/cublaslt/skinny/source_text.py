"""The CUDA C++ of one skinny kernel: its constants, and the texts that they choose among."""

from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.instructions import INSTRUCTIONS
from tensorplay.backends.cublaslt.skinny.kernel_text import ENTRY, READING, TYPES
from tensorplay.backends.cublaslt.skinny.shape import Shape
from tensorplay.backends.cublaslt.skinny.sum_text import SUMS

__all__ = ["ENTRY_NAME", "body_text", "source_text"]

ENTRY_NAME = "skinny"
"""What the function is called in each source."""

_TYPES = {"float16": "half_type", "bfloat16": "bfloat_type", "float32": "float_type"}

# Of 128 bytes, that each thread asks for before it waits for the kernel ahead.
_NEAR_LINES = 2


def source_text(configuration: Configuration, shape: Shape) -> str:
    """Return the source of a configuration; of the sizes, columns and whether there is a rest are in it."""
    return INSTRUCTIONS + body_text(configuration, shape)


def body_text(configuration: Configuration, shape: Shape) -> str:
    """Return the source without its instructions."""
    constants = {
        "TILE": configuration.tile,
        "ROWS": configuration.rows,
        "SPLIT": configuration.split,
        "VEC": configuration.vec,
        "STAGES": configuration.stages,
        "WARPS": configuration.warps,
        # Matrix instructions take columns by eights.
        "COLUMNS": -(-shape.columns // 8) * 8 if configuration.mma else shape.columns,
        "X_PIECE": shape.x_alignment,
        "NEAR_LINES": _NEAR_LINES,
    }
    element, result = _TYPES[shape.dtype.name], _TYPES[shape.out_dtype.name]
    # Most depths are whole chunks, and the code for the rest takes many registers.
    split, has_rest = configuration.split, shape.depth % configuration.chunk(shape) != 0
    return "".join(
        (
            f"constexpr int {', '.join(f'{name} = {value}' for name, value in constants.items())};\n",
            f"constexpr bool MMA = {configuration.mma > 0:d}, HAS_REST = {has_rest:d};\n",
            f"constexpr bool IS_ALONG = {shape.is_along:d};\n",
            TYPES,
            f"typedef {element} element;\ntypedef {result} result;\n",
            READING,
            SUMS[configuration.mma, shape.is_along],
            ENTRY.replace("/*cluster*/", f"__cluster_dims__({split}, 1, 1)" if split > 1 else ""),
        )
    )
