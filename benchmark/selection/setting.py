"""How a run is set: which items of which lists, for how long, in which folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.cuda_shapes import CudaOperands

from selection.shapes import DECODE_SHAPES, SHAPES, SelectionShape, read_decode, read_shapes, sets_of
from selection.sharing import Share
from tensorplay.backends.cublaslt.device import device

__all__ = ["Setting", "allowing_tf32", "operand_sets", "shapes_by_name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run's parts are told.

    Attributes
    ----------
    work : path
        Where results files of tuning are; parts of one run share it.
    wanted : str or None
        Which items of a part's list are measured, as `parse_slice` reads it; None for the part's own default.
    share : Share or None
        Which of these, where several devices share them.
    shapes_file, decode_file : path
        The lists of shapes.
    search_seconds, long_seconds : float
        What a search may take a shape, and the long one that it is compared with.
    rounds : int
        Rounds of each comparison.
    repeats : int
        Fresh processes that must find the same winner.
    problems : int
        Random problems whose winners are checked.
    without : frozenset of str
        Contestants that take no part.
    quick : bool
        Whether only to see that it runs.
    """

    work: Path
    wanted: str | None = None
    share: Share | None = None
    shapes_file: Path = SHAPES
    decode_file: Path = DECODE_SHAPES
    search_seconds: float = 3.0
    long_seconds: float = 60.0
    rounds: int = 41
    repeats: int = 5
    problems: int = 2000
    without: frozenset[str] = frozenset()
    quick: bool = False

    @property
    def shapes(self) -> tuple[SelectionShape, ...]:
        """Return the shapes of the comparison."""
        return read_shapes(self.shapes_file)

    @property
    def decode_shapes(self) -> tuple[SelectionShape, ...]:
        """Return the decode shapes."""
        return read_decode(self.decode_file)


def shapes_by_name(shapes: tuple[SelectionShape, ...]) -> dict[str, SelectionShape]:
    """Return shapes by the names that rows have."""
    return {str(shape): shape for shape in shapes}


def operand_sets(shape: SelectionShape, most: int | None = None) -> list[CudaOperands]:
    """Return sets of operands that are more than twice the second-level cache, or `most` of them."""
    return [shape.operands(seed) for seed in range(most or sets_of(shape, device(0).l2_bytes))]


@contextmanager
def allowing_tf32(shape: SelectionShape) -> Iterator[None]:
    """Let torch, and what follows its switch, multiply float32 in TF32 where the shape is one of TF32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = shape.dtype == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
