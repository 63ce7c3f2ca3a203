"""Which attributes go together, and their text."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay.backends.cublaslt.skinny.configuration import Configuration
from tensorplay.backends.cublaslt.skinny.shape import Shape, skinny_shape
from tensorplay.errors import KernelUnavailableError
from tensorplay.gemm import GemmProblem, SourceKernelId, dtype_of_name, parse_kernel_id

SOUND = Configuration(mma=1, tile=32, rows=16, split=2, vec=16, stages=2, threads=128)
RING = replace(SOUND, mma=2)


def shape(name: str = "bfloat16", columns: int = 8, *, is_along: bool = True, alignment: int = 16) -> Shape:
    dtype = dtype_of_name(name)
    assert dtype is not None
    return skinny_shape(
        GemmProblem(dtype=dtype, m=columns, n=4096, k=4096, device="0", transpose_right=is_along, alignment=alignment)
    )


@given(values=st.lists(st.integers(0, 2**31 - 1), min_size=7, max_size=7))
def test_a_kernel_id_and_its_text_name_the_configuration(values: list[int]) -> None:
    configuration = Configuration(*values)
    assert Configuration.of(configuration.kernel_id) == configuration
    parsed = parse_kernel_id(str(configuration.kernel_id))
    assert isinstance(parsed, SourceKernelId)
    assert Configuration.of(parsed) == configuration


def test_a_kernel_id_of_other_attributes_is_refused() -> None:
    sound = SOUND.kernel_id
    for options in (sound.options[:-1], sound.options[::-1], (*sound.options, ("further", 1))):
        with pytest.raises(KernelUnavailableError, match="mma, tile, rows"):
            Configuration.of(SourceKernelId(sound.source, tuple(options)))


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        (replace(SOUND, mma=3), "mma is 0"),
        (replace(SOUND, vec=32), "vec is"),
        (replace(SOUND, vec=1), "vec is"),
        (replace(SOUND, split=3), "split is"),
        (replace(SOUND, split=16), "split is"),
        (replace(SOUND, stages=0), "stages are"),
        (replace(SOUND, stages=9), "stages are"),
        (replace(SOUND, threads=100), "threads are"),
        (replace(SOUND, threads=0), "threads are"),
        (replace(SOUND, threads=544), "threads are"),
        (replace(SOUND, rows=12, tile=12), "rows are a multiple of 8"),
        (replace(SOUND, rows=0), "rows are"),
        (replace(SOUND, tile=40), "tile is"),
        (replace(SOUND, tile=96), "tile is"),
        (replace(SOUND, rows=128, tile=128, stages=4), "words of operands"),
        (replace(RING, rows=144, tile=144, threads=512, stages=4), "shared memory"),
        (replace(RING, vec=8), "vec of mma 2 is one of 16, 32, 64"),
    ],
    ids=lambda value: str(value.kernel_id) if isinstance(value, Configuration) else "",
)
def test_attributes_that_do_not_go_together_are_refused_with_the_reason(
    configuration: Configuration, reason: str
) -> None:
    SOUND.check(shape())
    RING.check(shape())
    with pytest.raises(KernelUnavailableError, match=reason):
        configuration.check(shape())


def test_a_ring_takes_whole_pieces_of_half_types_only() -> None:
    across = replace(RING, tile=128, rows=64)
    RING.check(shape("float16"))
    across.check(shape(is_along=False))
    for configuration, other in (
        (RING, shape("float32")),
        (RING, shape(alignment=8)),
        (RING, shape(is_along=False)),
        (replace(across, vec=32), shape(is_along=False)),
        (across, replace(shape(is_along=False), rows=4093)),
    ):
        with pytest.raises(KernelUnavailableError):
            configuration.check(other)
    strided = GemmProblem(
        dtype=shape().dtype, m=8, n=4096, k=4096, device="0", transpose_right=True, transpose_left=True
    )
    with pytest.raises(KernelUnavailableError, match="whole 16 bytes"):
        RING.check(skinny_shape(strided))


@given(
    values=st.tuples(
        st.integers(0, 4),
        st.integers(0, 75).map(lambda each: each * 8),
        st.integers(0, 40).map(lambda each: each * 8),
        st.integers(0, 9),
        st.sampled_from([0, 1, 2, 3, 4, 8, 16, 32]),
        st.integers(0, 10),
        st.integers(0, 20).map(lambda each: each * 32),
    ),
    columns=st.integers(1, 16),
    is_along=st.booleans(),
)
def test_what_is_not_refused_fits_a_block(values: tuple[int, ...], columns: int, is_along: bool) -> None:
    configuration, here = Configuration(*values), shape(columns=columns, is_along=is_along)
    try:
        configuration.check(here)
    except KernelUnavailableError:
        return
    assert 32 <= configuration.threads <= 512
    assert configuration.shared_bytes(here) <= 227 << 10
    assert configuration.depth_warps * (configuration.tile // configuration.rows) == configuration.warps
    assert configuration.threads * configuration.registers(here) < 65536


def test_sums_may_take_all_the_shared_memory_that_a_block_can_have() -> None:
    many = Configuration(mma=1, tile=64, rows=64, split=2, vec=16, stages=2, threads=512)
    across = shape(columns=16, is_along=False)
    many.check(across)
    assert many.shared_bytes(across) == 64 << 10


def test_a_ring_is_where_the_sums_are_left_and_has_room_for_both() -> None:
    narrow = replace(RING, stages=1, rows=8, tile=8, threads=512)
    assert narrow.shared_bytes(shape(columns=16)) >= 16 * 8 * 16 * 4
    assert RING.shared_bytes(shape()) == 4 * 2 * (16 + 8) * 128
    across = replace(RING, tile=128, rows=64)
    assert across.shared_bytes(shape(is_along=False)) == 4 * 2 * (64 + 8) * 32
    assert replace(RING, vec=64).shared_bytes(shape()) == 4 * 2 * (16 + 8) * 512
    assert {field.name for field in fields(Configuration)} == {name for name, _ in RING.kernel_id.options}
