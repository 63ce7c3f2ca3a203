"""What a launch is made of: its grid, and the arguments that the problem fixes."""

import math
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.plan import _single, arguments_of, launch_grid
from tensorplay.backends.cublaslt.skinny.shape import skinny_shape
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, dtype_of_name

FLOAT = dtype_of_name("float32")
assert FLOAT is not None
SHAPE = skinny_shape(GemmProblem(dtype=FLOAT, m=4, n=1000, k=64, device="0", transpose_right=True, ld_out=1004))
PLAIN = Configuration(mma=0, tile=4, rows=4, split=1, vec=16, stages=1, threads=32)


@given(rows=st.integers(1, 2**30), tile=st.integers(1, 512), split=st.sampled_from([1, 2, 4, 8]))
def test_a_grid_has_a_cluster_for_each_begun_tile_or_is_refused(rows: int, tile: int, split: int) -> None:
    shape, configuration = replace(SHAPE, rows=rows), replace(PLAIN, tile=tile, split=split)
    if (rows + tile - 1) // tile * split > 2**31 - 1:
        with pytest.raises(KernelUnavailableError, match="blocks"):
            launch_grid(configuration, shape)
    else:
        blocks = launch_grid(configuration, shape)
        assert blocks % split == 0
        assert (blocks // split - 1) * tile < rows <= blocks // split * tile


def test_the_fixed_arguments_stand_as_the_kernel_declares_them() -> None:
    packed = struct.unpack("<5q6i", arguments_of(SHAPE, "gelu"))
    assert packed == (64, 64, 1, 1, 1004, 1000, 4, 64, 2, 1, 0)


@pytest.mark.parametrize(
    ("given_number", "single"), [(1, 1.0), (1e300, math.inf), (-1e300, -math.inf), (2 + 0j, 2.0), (math.inf, math.inf)]
)
def test_a_factor_beyond_single_precision_is_infinite(given_number: complex, single: float) -> None:
    assert _single(given_number) == single


def test_a_factor_that_is_not_a_number_stays_so() -> None:
    assert math.isnan(_single(math.nan))
