import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tensorplay.errors import KernelIdError
from tensorplay.gemm import DEFAULT, HostKernelId, LtKernelId, SourceKernelId, is_kernel_id, parse_kernel_id
from tensorplay.gemm.kernel_id import KernelId

LT = "lt_id7_tile12_stages3_splitk0_red0_swizzle0_custom0_inner1_cluster1"
INT32, UINT32, UINT16 = (st.integers(0, 2**bits - 1) for bits in (31, 32, 16))
SPLITS = st.integers(-1, 2**31 - 1)

lt_ids = st.builds(LtKernelId, INT32, UINT32, UINT32, SPLITS, UINT32, UINT32, UINT32, UINT16, UINT16)
words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
host_ids = st.builds(
    HostKernelId,
    words,
    st.dictionaries(words, st.integers(0, 10**10 - 1), max_size=4).map(lambda options: tuple(options.items())),
)
source_ids = st.builds(
    SourceKernelId,
    st.sampled_from(["cublas", "skinny"]),
    st.dictionaries(words, st.integers(0, 10**10 - 1), max_size=8).map(lambda options: tuple(options.items())),
)
kernel_ids = lt_ids | host_ids | source_ids


def test_a_cublaslt_kernel_reads_as_the_oldest_files_do() -> None:
    assert str(LtKernelId(7, 12, 3, 0, 0, 0, 0, 1, 1)) == LT
    assert parse_kernel_id(LT) == LtKernelId(7, 12, 3, 0, 0, 0, 0, 1, 1)


def test_splits_that_the_library_chooses_itself_are_minus_one_and_no_other_field_is() -> None:
    text = LT.replace("splitk0", "splitk-1")
    kernel = parse_kernel_id(text)
    assert kernel == LtKernelId(7, 12, 3, -1, 0, 0, 0, 1, 1)
    assert str(kernel) == text
    assert is_kernel_id(text)


def test_a_host_kernel_is_its_source_and_options_in_their_order() -> None:
    kernel = HostKernelId("numpy", (("threads", 2), ("swapped", 1)))
    assert str(kernel) == "host_numpy_threads2_swapped1"
    assert parse_kernel_id(str(kernel)) == kernel
    assert parse_kernel_id("host_numpy") == HostKernelId("numpy")


def test_a_kernel_of_another_source_on_a_device_is_that_source_and_its_options() -> None:
    kernel = SourceKernelId("skinny", (("tile", 8), ("split", 4)))
    assert str(kernel) == "skinny_tile8_split4"
    assert parse_kernel_id(str(kernel)) == kernel
    assert parse_kernel_id("cublas") == SourceKernelId("cublas")
    for options in ((("tile", 8), ("tile", 8)), (("Tile", 8),), (("tile", -1),)):
        with pytest.raises(KernelIdError):
            SourceKernelId("skinny", options)
    with pytest.raises(KernelIdError, match="cublas"):
        SourceKernelId("numpy")


def test_default_names_no_kernel() -> None:
    assert parse_kernel_id(DEFAULT) is None
    assert is_kernel_id(DEFAULT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "default",
        "Default ",
        "Default\n",
        LT + "\n",
        LT.replace("id7", "id07"),
        LT.replace("id7", "id-7"),
        LT.replace("splitk0", "splitk-0"),
        LT.replace("splitk0", "splitk-2"),
        LT.replace("splitk0", "splitk-10"),
        LT.replace("splitk0", "splitk-01"),
        LT.replace("splitk0", "splitk--1"),
        LT.replace("splitk0", "splitk2147483648"),
        LT.replace("tile12", "tile-1"),
        LT.replace("cluster1", "cluster-1"),
        LT.replace("id7", "id2147483648"),
        LT.replace("tile12", "tile4294967296"),
        LT.replace("inner1", "inner65536"),
        LT.replace("tile12", "tile" + "9" * 10_000),
        LT.replace("tile12_stages3", "stages3_tile12"),
        LT.replace("_cluster1", ""),
        LT + "_extra1",
        LT.replace("id7", "id\u0667"),
        "host_",
        "cublas_",
        "cublaslt",
        "skinny_tile",
        "skinny_tile08",
        "skinny_tile8 ",
        "Skinny_tile8",
        "host_Numpy",
        "host_numpy_threads",
        "host_numpy_threads01",
        "host_numpy_2",
        "host_numpy2",
        "host_numpy_threads1_threads2",
        "host_numpy_threads" + "9" * 11,
        "Gemm_Rocblas_21",
    ],
)
def test_a_text_that_names_no_kernel_is_refused(text: str) -> None:
    with pytest.raises(KernelIdError):
        parse_kernel_id(text)
    assert not is_kernel_id(text)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("", ()),
        ("Numpy", ()),
        ("numpy_threads2", ()),
        ("numpy", (("threads", -1),)),
        ("numpy", (("threads", True),)),
        ("numpy", (("threads", 10**10),)),
        ("numpy", (("threads1_swapped", 2),)),
        ("numpy", (("threads", 1), ("threads", 2))),
        ("numpy,scipy", ()),
        ("numpy\n", ()),
    ],
)
def test_a_host_kernel_that_its_text_would_not_give_back_cannot_be_made(
    source: str, options: tuple[tuple[str, int], ...]
) -> None:
    with pytest.raises(KernelIdError, match="host_"):
        HostKernelId(source, options)


@pytest.mark.parametrize(
    ("position", "value"),
    [(0, -1), (0, 2**31), (1, 2**32), (2, -1), (3, -2), (3, 2**31), (6, 2**32), (7, 2**16), (8, 2**16)],
)
def test_an_attribute_wider_than_the_library_keeps_is_refused_by_name(position: int, value: int) -> None:
    attributes = [0] * 9
    attributes[position] = value
    name = ("id", "tile", "stages", "splitk", "red", "swizzle", "custom", "inner", "cluster")[position]
    least = -1 if name == "splitk" else 0
    with pytest.raises(KernelIdError, match=f"^{name} of a cuBLASLt kernel id is {value}; allowed: {least} to "):
        LtKernelId(*attributes)


def assert_one_spelling(text: str) -> None:
    try:
        kernel = parse_kernel_id(text)
    except KernelIdError:
        assert not is_kernel_id(text)
    else:
        assert text == (DEFAULT if kernel is None else str(kernel))
        assert is_kernel_id(text)


@st.composite
def changed_texts(draw: st.DrawFn) -> str:
    """Draw a kernel id's text with a few characters put in, taken out or moved."""
    text = str(draw(kernel_ids))
    start, width = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
    return text[:start] + draw(st.text("0123456789_abt\n\u0663 D-", max_size=3)) + text[start + width :]


@hypothesis_settings(max_examples=300, deadline=None)
@given(kernel=kernel_ids)
def test_every_kernel_comes_back_from_its_text(kernel: KernelId) -> None:
    assert parse_kernel_id(str(kernel)) == kernel
    assert is_kernel_id(str(kernel))
    assert "," not in str(kernel)


@hypothesis_settings(max_examples=300, deadline=None)
@given(text=changed_texts() | st.text())
def test_a_changed_text_fails_or_is_the_text_of_what_it_says(text: str) -> None:
    assert_one_spelling(text)


@pytest.mark.nightly
@hypothesis_settings(max_examples=10_000, deadline=None)
@given(kernel=kernel_ids, text=changed_texts() | st.text())
def test_ten_thousand_kernels_and_changed_texts_keep_the_rules(kernel: KernelId, text: str) -> None:
    assert parse_kernel_id(str(kernel)) == kernel
    assert_one_spelling(text)
